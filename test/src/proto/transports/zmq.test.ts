import assert from 'node:assert/strict';
import { lookup } from 'node:dns/promises';
import { test } from 'node:test';
import type { Link } from '@trunkline/proto';
import { Dealer } from 'zeromq';
import { until } from '../../support/wait.js';
import { echo, numbered, Record, transport } from './record.js';

for (const bytes of [8, 128, 129, 5000]) {
  test(`F31: a thousand batches of ${bytes} bytes sent in one tick arrive in order, both ways`, async (t) => {
    const zmq = transport(t);
    const server = new Record();
    server.handle = echo;
    const listener = await zmq.listen('tcp://127.0.0.1:0', server);
    const client = new Record();
    const link = zmq.dial(listener.address, client);
    await until(() => client.up, 'the link is up');
    for (let i = 0; i < 1000; i++) link.send(numbered(i, bytes));
    await until(() => client.batches.length === 1000, 'all came back');
    assert.deepEqual(client.numbers, [...Array(1000).keys()]);
    assert.deepEqual(server.numbers, [...Array(1000).keys()]);
    assert.equal(server.links.length, 1);
    assert.deepEqual(client.told, ['up']);
  });
}

test('receiving goes in bounded steps, each with its end', async (t) => {
  const zmq = transport(t, { stepBatches: 10 });
  const server = new Record();
  const listener = await zmq.listen('tcp://127.0.0.1:0', server);
  const client = new Record();
  const link = zmq.dial(listener.address, client);
  await until(() => client.up, 'the link is up');
  for (let i = 0; i < 500; i++) link.send(numbered(i));
  await until(() => server.batches.length === 500 && server.steps.reduce((a, b) => a + b, 0) === 500, 'all arrived');
  assert.ok(Math.max(...server.steps) <= 10);
  assert.ok(server.steps.length >= 50);
});

test('a receiver that throws is counted and disturbs nothing', async (t) => {
  const zmq = transport(t);
  const server = new Record();
  server.handle = (link, batch) => {
    if (batch.length === 9) throw new Error('broken receiver');
    link.send(batch);
  };
  const listener = await zmq.listen('tcp://127.0.0.1:0', server);
  const client = new Record();
  const link = zmq.dial(listener.address, client);
  await until(() => client.up, 'the link is up');
  link.send(numbered(1));
  link.send(numbered(2, 9));
  link.send(numbered(3));
  await until(() => client.batches.length === 2, 'the others came back');
  assert.deepEqual(client.numbers, [1, 3]);
  assert.equal(zmq.counters.faults, 1);
});

test('a received batch is no Buffer: what is sliced out of it is a copy', async (t) => {
  const zmq = transport(t);
  const server = new Record();
  const slices: Uint8Array[] = [];
  const check = (batch: Uint8Array) => {
    const slice = batch.slice(0, 4);
    slice.fill(0xee);
    slices.push(slice);
    assert.equal(Object.getPrototypeOf(batch), Uint8Array.prototype);
    assert.notEqual(batch[0], 0xee);
  };
  server.handle = (link, batch) => {
    check(batch);
    link.send(batch);
  };
  const listener = await zmq.listen('tcp://127.0.0.1:0', server);
  const client = new Record();
  client.handle = (_link, batch) => check(batch);
  const link = zmq.dial(listener.address, client);
  await until(() => client.up, 'the link is up');
  link.send(numbered(1, 64));
  link.send(numbered(2, 5000));
  await until(() => slices.length === 4, 'all were checked, both ways');
  assert.equal(zmq.counters.faults, 0);
});

test('received bytes belong to the receiver: kept and written in place, they change nothing else', async (t) => {
  const zmq = transport(t);
  const server = new Record();
  const listener = await zmq.listen('tcp://127.0.0.1:0', server);
  const client = new Record();
  const link = zmq.dial(listener.address, client);
  await until(() => client.up, 'the link is up');
  const sizes = [0, 1, 32, 33, 100, 128, 129, 500, 4000, 9000, 70_000];
  const rounds = 20;
  server.handle = (_link, batch) => batch.fill(server.batches.length % 251);
  for (let round = 0; round < rounds; round++) for (const size of sizes) link.send(new Uint8Array(size).fill(255));
  await until(() => server.batches.length === rounds * sizes.length, 'all arrived');
  for (const [index, batch] of server.batches.entries()) {
    assert.equal(batch.length, sizes[index % sizes.length]);
    assert.ok(batch.every((byte) => byte === (index + 1) % 251));
  }
});

test('batches of 16 MiB go both ways', async (t) => {
  const zmq = transport(t);
  const server = new Record();
  server.handle = echo;
  const listener = await zmq.listen('tcp://127.0.0.1:0', server);
  const client = new Record();
  const link = zmq.dial(listener.address, client);
  await until(() => client.up, 'the link is up');
  for (let i = 0; i < 3; i++) link.send(numbered(i, 16 * 1024 * 1024));
  await until(() => client.batches.length === 3, 'all came back');
  assert.deepEqual(client.numbers, [0, 1, 2]);
  assert.ok(client.batches.every((batch) => batch.length === 16 * 1024 * 1024));
});

test('an oversize batch ends its own connection only; the link comes back by itself', async (t) => {
  const zmq = transport(t, { maxBatchBytes: 100_000, reconnectMs: 5 });
  const server = new Record();
  server.handle = echo;
  const listener = await zmq.listen('tcp://127.0.0.1:0', server);
  const [good, bad] = [new Record(), new Record()];
  const goodLink = zmq.dial(listener.address, good);
  const badLink = zmq.dial(listener.address, bad);
  await until(() => good.up && bad.up, 'the links are up');
  goodLink.send(numbered(1, 100_000));
  badLink.send(numbered(2, 100_001));
  await until(() => bad.told.length === 3, 'the bad link was lost and came back');
  assert.deepEqual(bad.told, ['up', 'down: connection lost', 'up']);
  badLink.send(numbered(3));
  goodLink.send(numbered(4));
  await until(() => good.batches.length === 2 && bad.batches.length === 1, 'both work');
  assert.deepEqual([good.numbers, bad.numbers, good.told], [[1, 4], [3], ['up']]);
});

test('an oversize batch from the listener ends that connection and not the dialled link', async (t) => {
  const server = new Record();
  const listener = await transport(t).listen('tcp://127.0.0.1:0', server);
  const client = new Record();
  const link = transport(t, { maxBatchBytes: 1000, reconnectMs: 5 }).dial(listener.address, client);
  await until(() => client.up, 'the link is up');
  link.send(numbered(1));
  await until(() => server.links.length === 1, 'the peer is known');
  server.links[0]!.send(numbered(2, 1001));
  await until(() => client.told.length === 3, 'the link was lost and came back');
  link.send(numbered(3));
  await until(() => server.links.length === 2, 'the peer is known again');
  server.links[1]!.send(numbered(4, 1000));
  await until(() => client.batches.length === 1, 'the batch is here');
  assert.deepEqual(client.numbers, [4]);
});

test('messages with another number of frames are dropped and counted', async (t) => {
  const zmq = transport(t);
  const server = new Record();
  const listener = await zmq.listen('tcp://127.0.0.1:0', server);
  const dealer = new Dealer({ linger: 0 });
  t.after(() => dealer.close());
  dealer.connect(listener.address);
  await dealer.send(['', 'a']);
  await dealer.send(['a', 'b']);
  await dealer.send(Array(20).fill('x'));
  await dealer.send('');
  await dealer.send('good');
  await until(() => server.batches.length === 2, 'the single frames are here');
  assert.deepEqual(
    server.batches.map((batch) => Buffer.from(batch).toString()),
    ['', 'good'],
  );
  assert.equal(zmq.counters.droppedFrames, 3);
  assert.equal(server.links.length, 1);
});

test('routing ids chosen by clients are bytes: none collapses into another', async (t) => {
  const zmq = transport(t);
  const server = new Record();
  server.handle = echo;
  const listener = await zmq.listen('tcp://127.0.0.1:0', server);
  const ids = [Buffer.from([0xff, 0xfe]), Buffer.from([0xff, 0xfd]), Buffer.from('7'), Buffer.from([0xef, 0xbf, 0xbd])];
  const dealers = ids.map((id) => {
    const dealer = new Dealer({ linger: 0, routingId: id as unknown as string });
    t.after(() => dealer.close());
    dealer.connect(listener.address);
    return dealer;
  });
  for (const [index, dealer] of dealers.entries()) {
    await dealer.send(numbered(index));
    const [answer] = await dealer.receive();
    assert.equal(answer!.readUInt32LE(), index);
  }
  assert.equal(server.links.length, ids.length);
});

test('F34: a client with a fixed routing id that comes back works at once', async (t) => {
  const zmq = transport(t);
  const server = new Record();
  server.handle = echo;
  const listener = await zmq.listen('tcp://127.0.0.1:0', server);
  for (let round = 0; round < 5; round++) {
    const dealer = new Dealer({ linger: 0, routingId: 'fixed' });
    dealer.connect(listener.address);
    await dealer.send(numbered(round));
    assert.equal((await dealer.receive())[0]!.readUInt32LE(), round);
    dealer.close();
  }
});

test('F32: sending to a peer that is gone tells once and holds up nobody', async (t) => {
  const zmq = transport(t);
  const server = new Record();
  const listener = await zmq.listen('tcp://127.0.0.1:0', server);
  const [stays, leaves] = [new Record(), new Record()];
  const staying = zmq.dial(listener.address, stays);
  const leaving = zmq.dial(listener.address, leaves);
  await until(() => stays.up && leaves.up, 'the links are up');
  staying.send(numbered(1));
  await until(() => server.links.length === 1, 'the first is known');
  leaving.send(numbered(2));
  await until(() => server.links.length === 2, 'the second is known');
  leaving.close();
  await until(() => server.suspects > 0, 'the listener heard that somebody left');
  const [first, second] = server.links as [Link, Link];
  for (let i = 0; i < 10; i++) {
    second.send(numbered(i));
    assert.deepEqual(server.told, [], 'no event inside send');
    first.send(numbered(i));
  }
  await until(() => stays.batches.length === 10 && server.told.length > 0, 'the healthy one got all');
  assert.deepEqual(server.told, ['down: unreachable']);
  assert.deepEqual(stays.numbers, [...Array(10).keys()]);
  assert.equal(zmq.counters.unreachable, 1);
  second.send(numbered(1));
  second.close();
  assert.deepEqual(server.told, ['down: unreachable']);
});

test('a forgotten peer that speaks again is a new link', async (t) => {
  const zmq = transport(t);
  const server = new Record();
  server.handle = (link) => link.close();
  const listener = await zmq.listen('tcp://127.0.0.1:0', server);
  const client = new Record();
  const link = zmq.dial(listener.address, client);
  await until(() => client.up, 'the link is up');
  link.send(numbered(1));
  link.send(numbered(2));
  await until(() => server.links.length === 2, 'two links were made');
  server.links[0]!.send(numbered(3));
  server.links[1]!.close();
  assert.equal(zmq.counters.droppedSends, 1);
  assert.deepEqual(server.told, []);
});

test('many peers that leave at once are few reports', async (t) => {
  const zmq = transport(t);
  const server = new Record();
  const listener = await zmq.listen('tcp://127.0.0.1:0', server);
  const records = Array.from({ length: 40 }, () => new Record());
  const links = records.map((record) => zmq.dial(listener.address, record));
  await until(() => records.every((record) => record.up), 'all are up');
  for (const link of links) link.close();
  await until(() => server.suspects > 0, 'a report');
  assert.ok(server.suspects <= 3, `${server.suspects} reports`);
});

test('F35: a peer that restarts at its address is reached again, three times', async (t) => {
  const client = new Record();
  const zmq = transport(t, { reconnectMs: 5, reconnectMaxMs: 50 });
  let address = 'tcp://127.0.0.1:0';
  let link: Link | undefined;
  for (let round = 0; round < 4; round++) {
    const server = new Record();
    server.handle = echo;
    const peer = transport(t);
    const listener = await peer.listen(address, server);
    address = listener.address;
    link ??= zmq.dial(address, client);
    await until(() => client.up, 'the link is up');
    link.send(numbered(round));
    await until(() => client.batches.length === round + 1, 'the batch came back');
    await peer.close();
    await until(() => !client.up, 'the link noticed');
    link.send(numbered(99));
  }
  assert.deepEqual(client.numbers, [0, 1, 2, 3]);
  assert.deepEqual(client.told, Array(4).fill(['up', 'down: connection lost']).flat());
});

test('what a closing listener still sent is read before the link is told down', async (t) => {
  const client = new Record();
  const server = new Record();
  const peer = transport(t);
  const listener = await peer.listen('tcp://127.0.0.1:0', server);
  server.handle = (link) => {
    for (let i = 0; i < 500; i++) link.send(numbered(i, 2000));
    void listener.close();
  };
  let atDown = -1;
  client.onDown = () => {
    atDown = client.batches.length;
  };
  const link = transport(t).dial(listener.address, client);
  await until(() => client.up, 'the link is up');
  link.send(numbered(1));
  await until(() => atDown >= 0, 'the link is down');
  assert.equal(atDown, 500);
});

test('what a link sent before its close arrives', async (t) => {
  const server = new Record();
  const listener = await transport(t).listen('tcp://127.0.0.1:0', server);
  for (let round = 1; round <= 5; round++) {
    const client = new Record();
    const link = transport(t).dial(listener.address, client);
    await until(() => client.up, 'the link is up');
    for (let i = 0; i < 500; i++) link.send(numbered(i, 2000));
    link.close();
    await until(() => server.batches.length === 500 * round, 'all arrived');
  }
});

test('a link that is dialled before its peer is there comes up with it', async (t) => {
  const zmq = transport(t, { reconnectMs: 5, reconnectMaxMs: 20 });
  const probe = await zmq.listen('tcp://127.0.0.1:0', new Record());
  const { address } = probe;
  await probe.close();
  const client = new Record();
  const link = zmq.dial(address, client);
  link.send(numbered(1));
  const server = new Record();
  await zmq.listen(address, server);
  await until(() => client.up, 'the link is up');
  link.send(numbered(2));
  await until(() => server.batches.length === 1, 'the batch is here');
  assert.deepEqual([server.numbers, client.told], [[2], ['up']]);
});

const hosts: [string, RegExp][] = [
  ['tcp://127.0.0.1:0', /^tcp:\/\/127\.0\.0\.1:\d+$/],
  ['tcp://*:*', /^tcp:\/\/\*:\d+$/],
  ['tcp://localhost:0', /^tcp:\/\/localhost:\d+$/],
  ['tcp://[::1]:0', /^tcp:\/\/\[::1\]:\d+$/],
  ['tcp://[::]:0', /^tcp:\/\/\[::\]:\d+$/],
];

test('F41: every kind of host is listened at, and named hosts are dialled by IPv4 and IPv6', async (t) => {
  const families = new Set((await lookup('localhost', { all: true })).map((entry) => entry.family));
  for (const [text, expected] of hosts) {
    const zmq = transport(t, { reconnectMs: 5 });
    const server = new Record();
    server.handle = echo;
    const listener = await zmq.listen(text, server);
    assert.match(listener.address, expected);
    const port = listener.address.split(':').at(-1);
    const dials = text.includes('[::1]') ? [`tcp://[::1]:${port}`] : [`tcp://127.0.0.1:${port}`];
    if (text.includes('[::]')) dials.push(`tcp://[::1]:${port}`);
    if (!text.includes('[::1]') || families.has(6)) dials.push(`tcp://localhost:${port}`);
    for (const dial of dials) {
      const client = new Record();
      const link = zmq.dial(dial, client);
      await until(() => client.up, `${text} is reached by ${dial}`);
      link.send(numbered(7));
      await until(() => client.batches.length === 1, 'the batch came back');
      link.close();
    }
  }
});

test('wrong addresses and taken ports are coded errors', async (t) => {
  const zmq = transport(t);
  const { address } = await zmq.listen('tcp://127.0.0.1:0', new Record());
  await assert.rejects(zmq.listen(address, new Record()), { code: 'ADDRESS_IN_USE', message: new RegExp(address) });
  await assert.rejects(zmq.listen('tcp://127.0.0.1:70000', new Record()), { code: 'ADDRESS_INVALID' });
  await assert.rejects(zmq.listen('tcp://no-such-host.invalid:0', new Record()), { code: 'ADDRESS_INVALID' });
  await assert.rejects(zmq.listen('tcp://192.0.2.1:0', new Record()), { code: 'ADDRESS_INVALID' });
  assert.throws(() => zmq.dial('tcp://127.0.0.1:0', new Record()), { code: 'ADDRESS_INVALID' });
  assert.throws(() => zmq.dial('tcp://127.0.0.1', new Record()), { code: 'ADDRESS_INVALID' });
});

test('options out of range are refused', () => {
  const wrong = [
    { maxBatchBytes: 31 },
    { stepBatches: 0 },
    { stepBytes: 1.5 },
    { lingerMs: -1 },
    { reconnectMs: 2 ** 31 },
  ];
  for (const options of wrong)
    assert.throws(() => transport({ after() {} } as never, options), { code: 'OPTION_INVALID' });
});
