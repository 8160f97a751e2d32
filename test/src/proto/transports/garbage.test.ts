import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { TestContext } from 'node:test';
import type { Link } from '@trunkline/proto';
import { until } from '../../support/wait.js';
import { echo, type Kind, numbered, Record, testKinds, transport } from './record.js';

/** A running echo, to see that nothing disturbs it. */
async function running(t: TestContext, kind: Kind) {
  const listening = transport(t, kind, { maxBatchBytes: 100_000 });
  const server = new Record();
  server.handle = echo;
  const { address } = await listening.listen('tcp://127.0.0.1:0', server);
  const client = new Record();
  const link: Link = transport(t, kind).dial(address, client);
  await until(() => client.up, 'the link is up');
  let sent = 0;
  const assertRuns = async (what: string) => {
    for (let i = 0; i < 50; i++) link.send(numbered(sent++));
    await until(() => client.batches.length === sent, `the echo runs after ${what}`);
    assert.deepEqual(client.numbers, [...Array(sent).keys()], what);
    assert.deepEqual(client.told, ['up'], what);
  };
  return { listening, port: Number(address.split(':').at(-1)), assertRuns };
}

/** Sends bytes and waits until the connection is gone; a reset is as good an end as another. */
function raw(port: number, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.on('error', () => {});
    socket.once('close', () => resolve());
    socket.setTimeout(100, () => socket.destroy());
    socket.resume();
    socket.end(bytes);
  });
}

/** Bytes that look random and are the same in every run. */
function noise(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let state = 12345;
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}

/** The greeting of ZMTP 3.0 with the NULL mechanism, as a client sends it. */
const greeting = Buffer.alloc(64);
greeting.set([0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 3, 0]);
greeting.write('NULL', 12);

const garbage: [string, Uint8Array][] = [
  ['a NUL byte', Buffer.from([0])],
  ['an HTTP request', Buffer.from('GET / HTTP/1.0\r\n\r\n')],
  ['a TLS hello', Buffer.from('16030100c8010000c40303', 'hex')],
  ['nothing', Buffer.alloc(0)],
  ['1 MB of random bytes', noise(1_000_000)],
  ['random bytes that begin like ZMTP', Buffer.concat([greeting, noise(1000)])],
  ['a greeting cut short', greeting.subarray(0, 30)],
  ['a greeting alone', greeting],
  ['an unknown mechanism', Buffer.concat([greeting.subarray(0, 12), Buffer.from('WRONG'), Buffer.alloc(47)])],
  ['a frame whose length is 2^64-1', Buffer.concat([greeting, Buffer.from('02ffffffffffffffff', 'hex')])],
  ['a command whose length is 2^64-1', Buffer.concat([greeting, Buffer.from('06ffffffffffffffff', 'hex')])],
  ['a frame instead of READY', Buffer.concat([greeting, Buffer.from([0, 5]), Buffer.from('hello')])],
  ['READY with broken metadata', Buffer.concat([greeting, Buffer.from('040805524541445900ff', 'hex')])],
];

testKinds('F46: bytes of strangers at the port disturb no running link', async (t, kind) => {
  const { listening, port, assertRuns } = await running(t, kind);
  for (const [what, bytes] of garbage) {
    await raw(port, bytes);
    await assertRuns(what);
  }
  assert.ok(listening.counters.refusedHandshakes > 0);
  assert.equal(listening.counters.faults, 0);
});

testKinds('F46: a thousand connections that close at once disturb no running link', async (t, kind) => {
  const { port, assertRuns } = await running(t, kind);
  for (let round = 0; round < 20; round++) {
    await Promise.all(Array.from({ length: 50 }, () => raw(port, Buffer.alloc(0))));
    await assertRuns(`round ${round}`);
  }
});

testKinds('a dialled address where a stranger answers does not stop the link from coming up later', async (t, kind) => {
  const stranger = createServer((socket) => {
    socket.on('error', () => {});
    socket.resume();
    socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n'.repeat(5));
  });
  stranger.listen(0, '127.0.0.1');
  await once(stranger, 'listening');
  const { port } = stranger.address() as { port: number };
  const zmq = transport(t, kind, { reconnectMs: 5, reconnectMaxMs: 20 });
  const client = new Record();
  let knocks = 0;
  stranger.on('connection', () => knocks++);
  const link = zmq.dial(`tcp://127.0.0.1:${port}`, client);
  await until(() => knocks > 2, 'the stranger was dialled again and again');
  stranger.close();
  await once(stranger, 'close');
  const server = new Record();
  server.handle = echo;
  await zmq.listen(`tcp://127.0.0.1:${port}`, server);
  await until(() => client.up, 'the link is up');
  link.send(numbered(1));
  await until(() => client.batches.length === 1, 'the batch came back');
});
