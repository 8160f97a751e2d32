import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import type { TransportOptions } from '@trunkline/proto/zmtp';
import { until } from '../../../support/wait.js';
import { echo, numbered, Record, transport } from '../record.js';
import { COMMAND, command, frame, greeting, longHeader, MORE, ping, pretend, type Raw, ready } from './raw.js';

/* Whoever may be at an address that is dialled. */

function dialled(t: TestContext, address: string, options: TransportOptions = {}) {
  const made = transport(t, 'zmtp', { reconnectMs: 5, reconnectMaxMs: 10, maxBatchBytes: 100_000, ...options });
  const client = new Record();
  client.handle = echo;
  const link = made.dial(address, client);
  return { client, link, made, counters: made.counters };
}

const router = (raw: Raw) => raw.say(greeting(), ready('ROUTER'));

const refusing: [string, Buffer[]][] = [
  ['HTTP', [Buffer.from('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')]],
  ['CURVE', [greeting('CURVE')]],
  ['PLAIN', [greeting('PLAIN')]],
  ['ZMTP 2', [greeting('NULL', [2, 0]).subarray(0, 12)]],
  ['READY of a PUB', [greeting(), ready('PUB')]],
  ['READY of a REQ', [greeting(), ready('REQ')]],
  ['ERROR', [greeting(), command('ERROR', '\x05never')]],
  ['a message before READY', [greeting(), frame(0, 'early'), ready('ROUTER')]],
  ['a command too long', [greeting(), longHeader(COMMAND, 4097n)]],
];

for (const [what, parts] of refusing) {
  test(`an address that answers with ${what} is told as a refusal once, and tried again and again`, async (t) => {
    const address = await pretend(t, (raw) => raw.say(...parts));
    const { client, counters } = dialled(t, address);
    await until(() => counters.refusedHandshakes >= 3, 'it was tried three times');
    assert.deepEqual(client.told, ['down: handshake refused']);
    assert.deepEqual(client.batches, []);
  });
}

for (const [what, parts] of [
  ['nothing', []],
  ['half a greeting', [greeting().subarray(0, 20)]],
  ['a greeting alone', [greeting()]],
  ['half of READY', [greeting(), ready('ROUTER').subarray(0, 10)]],
] as [string, Buffer[]][]) {
  test(`an address that accepts and says ${what} is told as unanswered once its time is over`, async (t) => {
    const address = await pretend(t, (raw) => {
      if (parts.length > 0) raw.say(...parts);
    });
    const { client, counters } = dialled(t, address, { handshakeTimeoutMs: 30 });
    await until(() => counters.refusedHandshakes >= 2, 'it was tried again');
    assert.deepEqual(client.told, ['down: handshake not answered']);
  });
}

test('an address that accepts and ends without a fault is tried again without a word', async (t) => {
  let met = 0;
  const address = await pretend(t, (raw, count) => {
    met = count + 1;
    if (count % 2 === 1) raw.say(greeting());
    if (count < 4) raw.socket.end();
    else router(raw);
  });
  const { client, counters } = dialled(t, address);
  await until(() => client.up, 'the fifth attempt is the one');
  assert.deepEqual([client.told, met, counters.refusedHandshakes], [['up'], 5, 0]);
});

test('each refusal is told once for as long as it lasts', async (t) => {
  const address = await pretend(t, (raw, count) => {
    if (count === 2 || count === 5) {
      router(raw);
      raw.socket.once('data', () => setImmediate(() => raw.socket.end()));
    } else raw.say(greeting('CURVE'));
  });
  const { client } = dialled(t, address);
  const round = ['down: handshake refused', 'up', 'down: connection lost'];
  await until(() => client.told.length === 7, 'it was refused for the third time');
  assert.deepEqual(client.told, [...round, ...round, 'down: handshake refused']);
});

for (const [what, bytes] of [
  ['a frame of an unknown kind', frame(0x40, 'x')],
  ['a message too long', longHeader(0, 100_001n)],
  ['a command too long', longHeader(COMMAND, 4097n)],
] as [string, Buffer][]) {
  test(`${what} ends the connection, and the link comes back`, async (t) => {
    const address = await pretend(t, (raw, count) => {
      router(raw);
      raw.say(frame(0, numbered(count)));
      if (count === 0) raw.say(bytes, frame(0, numbered(9)));
    });
    const { client, counters } = dialled(t, address);
    await until(() => client.batches.length === 2, 'it is there again');
    assert.deepEqual(client.numbers, [0, 1]);
    assert.deepEqual(client.told, ['up', 'down: connection lost', 'up']);
    assert.equal(counters.refusedHandshakes, 0);
  });
}

test('a reset in the middle of a frame is a lost connection; what came whole was heard', async (t) => {
  const address = await pretend(t, (raw, count) => {
    router(raw);
    if (count > 0) return;
    raw.say(frame(0, numbered(1)), frame(0, numbered(2, 200)).subarray(0, 100));
    raw.socket.on('data', () => {
      if (raw.frames.length === 1) raw.socket.resetAndDestroy();
    });
  });
  const { client } = dialled(t, address);
  await until(() => client.told.length === 3, 'it is there again');
  assert.deepEqual(client.numbers, [1]);
  assert.deepEqual(client.told, ['up', 'down: connection lost', 'up']);
});

test('a listener that heartbeats, sends messages of several frames and odd commands is borne', async (t) => {
  let peer: Raw | undefined;
  const address = await pretend(t, (raw) => {
    peer = raw;
    router(raw);
    raw.say(ping('abc'), frame(MORE, 'a'), frame(0, 'b'), command('PONG'), frame(COMMAND, ''), frame(0, numbered(5)));
  });
  const { client, counters } = dialled(t, address);
  await until(() => peer?.frames.length === 2, 'the answers are there');
  assert.deepEqual(
    peer!.frames.map(({ flags }) => flags),
    [COMMAND, 0],
  );
  assert.equal(peer!.frames[0]!.body.toString(), '\x04PONGabc');
  assert.deepEqual([client.numbers, client.told, counters.droppedFrames], [[5], ['up'], 1]);
});

test('a listener that does not read while much is sent to it has all of it in order when it comes back', async (t) => {
  let peer: Raw | undefined;
  const address = await pretend(t, (raw) => {
    peer = raw;
    router(raw);
  });
  const { client, link } = dialled(t, address);
  await until(() => client.up, 'the link is up');
  peer!.socket.pause();
  for (let i = 0; i < 20_000; i++) link.send(numbered(i, 1000));
  peer!.say(frame(0, numbered(20_000)));
  await until(() => client.batches.length === 1, 'what it says is heard meanwhile');
  peer!.socket.resume();
  await until(() => peer!.heardBytes > 20_000 * 1009, 'all is there');
  await until(() => peer!.frames.length === 20_001, 'and the echo');
  assert.deepEqual(
    peer!.frames.map(({ body }) => body.readUInt32LE()),
    [...Array(20_001).keys()],
  );
});

test('close waits no longer than its linger for one who does not read, and the connection ends', async (t) => {
  let peer: Raw | undefined;
  const address = await pretend(t, (raw) => {
    peer = raw;
    router(raw);
  });
  const { client, link, made } = dialled(t, address, { lingerMs: 20 });
  await until(() => client.up, 'the link is up');
  peer!.socket.pause();
  for (let i = 0; i < 20; i++) link.send(new Uint8Array(1024 * 1024));
  await made.close();
  peer!.socket.resume();
  await until(() => peer!.closed, 'the connection is over');
  assert.ok(peer!.heardBytes < 20 * 1024 * 1024);
  assert.deepEqual(client.told, ['up']);
});

test('a link may be closed at any place of its handshake, and its connection with it', async (t) => {
  for (const parts of [[], [greeting().subarray(0, 30)], [greeting()], [greeting(), Buffer.of(COMMAND)]]) {
    let peer: Raw | undefined;
    const address = await pretend(t, (raw) => {
      peer = raw;
      if (parts.length > 0) raw.say(...parts);
    });
    const { client, link, made } = dialled(t, address);
    await until(() => (peer?.heardBytes ?? 0) >= 11, 'it is met');
    link.close();
    await made.close();
    await until(() => peer!.closed, 'the connection is over');
    assert.deepEqual(client.told, []);
  }
});

test('a link that its receiver closes hears nothing of what came with it', async (t) => {
  let peer: Raw | undefined;
  const address = await pretend(t, (raw) => {
    peer = raw;
    router(raw);
    raw.say(frame(0, numbered(1)), frame(0, numbered(2)), frame(0, numbered(3)));
  });
  const { client, link, made } = dialled(t, address);
  client.handle = () => link.close();
  await until(() => peer?.closed === true, 'the connection is over');
  await made.close();
  assert.deepEqual([client.numbers, client.told], [[1], ['up']]);
});

test('an attempt to connect that is not answered ends after its time', async (t) => {
  // it listens with the shortest queue and accepts nobody
  const worker = new Worker(
    `const { parentPort } = require('node:worker_threads');
     const wake = new Int32Array(new SharedArrayBuffer(4));
     const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
       parentPort.postMessage(server.address().port);
       setImmediate(() => Atomics.wait(wake, 0, 0));
     });`,
    { eval: true },
  );
  t.after(() => worker.terminate());
  const port = await new Promise<number>((resolve) => worker.once('message', resolve));
  let pauses = 0;
  t.mock.method(Math, 'random', () => {
    pauses++;
    return 0.5;
  });
  const clients = Array.from({ length: 6 }, () =>
    dialled(t, `tcp://127.0.0.1:${port}`, { connectTimeoutMs: 30, handshakeTimeoutMs: 60_000 }),
  );
  await until(() => pauses >= 6, 'attempts were given up');
  for (const { client, counters, made } of clients) {
    await made.close();
    assert.deepEqual([client.told, counters.refusedHandshakes], [[], 0]);
  }
});
