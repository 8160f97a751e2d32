import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { curveKeyPair, z85 } from '@trunkline/proto/zmq';
import { until } from '../../support/wait.js';
import { echo, numbered, Record, testKinds, transport } from './record.js';

test('Z85 writes the test case of its specification', () => {
  assert.equal(z85(Buffer.from('864fd26fb559f75b', 'hex')), 'HelloWorld');
});

const server = curveKeyPair();
const known = curveKeyPair();
const unknown = curveKeyPair();

test('an allowed key is let in, and batches pass both ways', async (t) => {
  const record = new Record();
  record.handle = echo;
  const zmq = transport(t, 'zmq', { curve: { ...server, allowedKeys: [known.publicKey] } });
  const { address } = await zmq.listen('tcp://127.0.0.1:0', record);
  const client = new Record();
  const link = transport(t, 'zmq', { curve: { ...known, serverKey: server.publicKey } }).dial(address, client);
  await until(() => client.up, 'the link is up');
  for (let i = 0; i < 200; i++) link.send(numbered(i, 1000));
  await until(() => client.batches.length === 200, 'all came back');
  assert.deepEqual(client.numbers, [...Array(200).keys()]);
  assert.equal(zmq.counters.refusedHandshakes, 0);
});

test('without a list whoever has the server key is let in', async (t) => {
  const { address } = await transport(t, 'zmq', { curve: server }).listen('tcp://127.0.0.1:0', new Record());
  const client = new Record();
  transport(t, 'zmq', { curve: { ...unknown, serverKey: () => server.publicKey } }).dial(address, client);
  await until(() => client.up, 'the link is up');
});

const refused = {
  'a key that is not on the list': { ...unknown, serverKey: server.publicKey },
  'a wrong server key': { ...known, serverKey: unknown.publicKey },
};

for (const [what, curve] of Object.entries(refused)) {
  test(`F43: ${what} is told as a refused handshake, once, and close ends`, async (t) => {
    const listening = transport(t, 'zmq', { curve: { ...server, allowedKeys: [known.publicKey] } });
    const { address } = await listening.listen('tcp://127.0.0.1:0', new Record());
    const client = new Record();
    const zmq = transport(t, 'zmq', { reconnectMs: 5, reconnectMaxMs: 10, curve });
    zmq.dial(address, client);
    await until(() => client.told.length > 0, 'the refusal was told', 3000);
    await until(() => zmq.counters.refusedHandshakes >= 3, 'it was tried again');
    assert.deepEqual(client.told, ['down: handshake refused']);
    assert.ok(listening.counters.refusedHandshakes >= 2);
    await zmq.close();
  });
}

testKinds('F43: no CURVE at all is told as a refused handshake, once, and close ends', async (t, kind) => {
  for (const allowedKeys of [undefined, [known.publicKey]]) {
    const curve = allowedKeys === undefined ? server : { ...server, allowedKeys };
    const listening = transport(t, 'zmq', { curve });
    const { address } = await listening.listen('tcp://127.0.0.1:0', new Record());
    const client = new Record();
    const plain = transport(t, kind, { reconnectMs: 5, reconnectMaxMs: 10 });
    plain.dial(address, client);
    await until(() => plain.counters.refusedHandshakes >= 3, 'it was tried again');
    assert.deepEqual(client.told, ['down: handshake refused']);
    await until(() => listening.counters.refusedHandshakes >= 2, 'the listener knows');
    await plain.close();
  }
});

testKinds('F43: a client with CURVE at a listener without is refused, told once, and tries again', async (t, kind) => {
  const record = new Record();
  const listening = transport(t, kind);
  const { address } = await listening.listen('tcp://127.0.0.1:0', record);
  const client = new Record();
  const curve = { ...known, serverKey: server.publicKey };
  const zmq = transport(t, 'zmq', { curve, reconnectMs: 5, reconnectMaxMs: 10 });
  zmq.dial(address, client);
  await until(() => zmq.counters.refusedHandshakes >= 3, 'it was tried again');
  assert.deepEqual(client.told, ['down: handshake refused']);
  await until(() => listening.counters.refusedHandshakes >= 2, 'the listener knows');
  assert.deepEqual([record.told, record.batches], [[], []]);
});

testKinds('a peer that connects and says nothing counts as refused, and is told apart', async (t, kind) => {
  const silent = createServer(() => {});
  silent.listen(0, '127.0.0.1');
  await until(() => silent.listening, 'the silent one listens');
  t.after(() => silent.close());
  const client = new Record();
  const made = transport(t, kind, { handshakeTimeoutMs: 50 });
  made.dial(`tcp://127.0.0.1:${(silent.address() as { port: number }).port}`, client);
  await until(() => client.told.length > 0, 'it was told');
  assert.deepEqual(client.told, ['down: handshake not answered']);
  assert.ok(made.counters.refusedHandshakes > 0);
});

test('F105: changed keys count from the next handshake, running links stay', async (t) => {
  const record = new Record();
  record.handle = echo;
  const listening = transport(t, 'zmq', { curve: { ...server, allowedKeys: [known.publicKey] } });
  const { address } = await listening.listen('tcp://127.0.0.1:0', record);
  const [early, late, fresh] = [new Record(), new Record(), new Record()];
  const mine = { ...known, serverKey: server.publicKey };
  const running = transport(t, 'zmq', { curve: mine }).dial(address, early);
  await until(() => early.up, 'the first link is up');
  listening.setCurve({ ...server, allowedKeys: [unknown.publicKey] });
  transport(t, 'zmq', { curve: mine }).dial(address, late);
  transport(t, 'zmq', { curve: { ...unknown, serverKey: server.publicKey } }).dial(address, fresh);
  await until(() => late.told.length > 0 && fresh.up, 'the old key is refused, the new one let in');
  running.send(numbered(1));
  await until(() => early.batches.length === 1, 'the running link runs');
  assert.deepEqual([early.told, late.told], [['up'], ['down: handshake refused']]);
});

test('a client that changes its keys comes in with the next attempt', async (t) => {
  const listening = transport(t, 'zmq', { curve: { ...server, allowedKeys: [known.publicKey] } });
  const { address } = await listening.listen('tcp://127.0.0.1:0', new Record());
  const client = new Record();
  const zmq = transport(t, 'zmq', { curve: { ...unknown, serverKey: server.publicKey }, reconnectMs: 5 });
  zmq.dial(address, client);
  await until(() => client.told.length > 0, 'refused');
  zmq.setCurve({ ...known, serverKey: server.publicKey });
  await until(() => client.up, 'the link is up');
});

test('wrong keys are refused without showing them', (t) => {
  const wrong = [
    { publicKey: 'short', secretKey: server.secretKey },
    { publicKey: server.publicKey, secretKey: `${server.secretKey.slice(1)}~` },
    { ...server, serverKey: '' },
    { ...server, allowedKeys: [server.publicKey, 'x'] },
  ];
  for (const curve of wrong) {
    assert.throws(
      () => transport(t, 'zmq', { curve }),
      (error: Error & { code?: string }) =>
        error.code === 'OPTION_INVALID' && !error.message.includes(server.secretKey.slice(1, 20)),
    );
  }
  assert.throws(() => transport(t, 'zmq', { curve: server }).dial('tcp://127.0.0.1:1', new Record()), {
    code: 'OPTION_INVALID',
    message: /serverKey for tcp:\/\/127\.0\.0\.1:1/,
  });
  assert.throws(() => transport(t, 'zmq').setCurve(server), { code: 'OPTION_INVALID' });
});
