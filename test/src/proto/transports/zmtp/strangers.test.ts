import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TransportOptions } from '@trunkline/proto/zmtp';
import { until } from '../../../support/wait.js';
import { echo, folder, numbered, Record, transport } from '../record.js';
import {
  COMMAND,
  command,
  dealer,
  frame,
  greeting,
  knock,
  LONG,
  longHeader,
  MORE,
  ping,
  property,
  ready,
} from './raw.js';

/* Whoever may knock at a listener, byte by byte. */

/** A listener that echoes, and why it refused somebody or broke a connection off. */
async function listening(t: TestContext, options: TransportOptions = {}, place = 'tcp://127.0.0.1:0') {
  const reasons: string[] = [];
  const warn = (fields: object, message: string) =>
    void reasons.push(`${message}: ${(fields as { reason?: string }).reason}`);
  const log = { debug() {}, info() {}, warn, error() {} };
  const made = transport(t, 'zmtp', { maxBatchBytes: 100_000, log, ...options });
  const server = new Record();
  server.handle = echo;
  const { address, close } = await made.listen(place, server).then((listener) => ({
    address: listener.address,
    close: () => listener.close(),
  }));
  return { server, address, reasons, close, counters: made.counters };
}

const refused: [string, Buffer[], string][] = [
  ['HTTP', [Buffer.from('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')], 'it does not speak ZeroMQ'],
  ['a TLS hello', [Buffer.from('16030100c8010000c40303', 'hex')], 'it does not speak ZeroMQ'],
  ['one NUL byte', [Buffer.of(0)], 'it does not speak ZeroMQ'],
  ['ZMTP 2', [greeting('NULL', [2, 0]).subarray(0, 12)], 'its version of ZeroMQ is older than 4'],
  ['CURVE', [greeting('CURVE')], 'it wants security that this end does not have'],
  ['PLAIN', [greeting('PLAIN')], 'it wants security that this end does not have'],
  ['READY of a PUB', [greeting(), ready('PUB')], 'a PUB is no partner'],
  ['READY of a REP', [greeting(), ready('REP')], 'a REP is no partner'],
  ['READY of nobody', [greeting(), command('READY', property('Identity', 'x'))], 'a socket of no type is no partner'],
  ['READY with broken properties', [greeting(), command('READY', '\xffxx')], 'a socket of no type is no partner'],
  ['ERROR', [greeting(), command('ERROR', '\x05never')], 'it refuses this end'],
  ['PING in place of READY', [greeting(), ping('x')], 'it breaks off the handshake'],
  ['a command without a name', [greeting(), frame(COMMAND, '')], 'it breaks off the handshake'],
  ['a message before READY', [greeting(), frame(0, 'early'), ready('DEALER')], 'it breaks off the handshake'],
  [
    'a message of several frames before READY',
    [greeting(), frame(MORE, 'early'), frame(0, 'x'), ready('DEALER')],
    'it breaks off the handshake',
  ],
  ['the length of a message before READY', [greeting(), longHeader(0, 90_000n)], 'it breaks off the handshake'],
  ['a command too long', [greeting(), longHeader(COMMAND, 4097n)], 'a message has more than 4096 bytes'],
  [
    'a command of 2^64-1 bytes',
    [greeting(), longHeader(COMMAND, 2n ** 64n - 1n)],
    'a message has more than 4096 bytes',
  ],
  ['a frame of an unknown kind', [greeting(), frame(8, 'x')], 'it sends frames of an unknown kind'],
];

for (const [what, parts, reason] of refused) {
  test(`F46: ${what} is refused at once, whether it comes whole or byte by byte`, async (t) => {
    const { server, address, reasons, counters } = await listening(t);
    const whole = await knock(t, address);
    whole.say(...parts);
    await until(() => whole.closed, 'the connection was ended');
    assert.deepEqual(reasons, [`handshake refused: ${reason}`]);
    const slow = await knock(t, address);
    for (const byte of Buffer.concat(parts)) {
      if (slow.closed) break;
      slow.say(Buffer.of(byte));
      await nextTurn();
    }
    await until(() => slow.closed, 'the connection was ended again');
    assert.equal(counters.refusedHandshakes, 2);
    assert.deepEqual([server.batches, server.told, counters.faults], [[], [], 0]);
    const friend = await dealer(t, address);
    friend.say(frame(0, 'hello'));
    await until(() => friend.frames.length === 1, 'somebody else is served');
  });
}

const brokenOff: [string, Buffer, string][] = [
  ['a frame of an unknown kind', frame(0x80, 'x'), 'it sends frames of an unknown kind'],
  ['a message too long', longHeader(0, 100_001n), 'a message has more than 100000 bytes'],
  ['a message of 2^64-1 bytes', longHeader(0, 2n ** 64n - 1n), 'a message has more than 100000 bytes'],
  [
    'a message of several frames that is too long',
    Buffer.concat([frame(MORE, Buffer.alloc(60_000)), frame(MORE, Buffer.alloc(60_000))]),
    'a message has more than 100000 bytes',
  ],
  ['a command too long', longHeader(COMMAND, 4097n), 'a message has more than 4096 bytes'],
];

for (const [what, bytes, reason] of brokenOff) {
  test(`${what} ends a connection that stood, and its link`, async (t) => {
    const { server, address, reasons, counters } = await listening(t);
    const [bad, mute] = [await dealer(t, address), await dealer(t, address)];
    bad.say(frame(0, 'one'), frame(0, 'two'), bytes, frame(0, 'three'));
    mute.say(bytes);
    await until(() => bad.closed && mute.closed, 'the connections were ended');
    await until(() => server.told.length > 0, 'the end of the link was told');
    assert.deepEqual(server.told, ['down: unreachable'], 'of the one who had spoken');
    assert.equal(server.batches.length, 2);
    assert.equal(reasons[0], `connection broken off: ${reason}`);
    assert.deepEqual([counters.refusedHandshakes, counters.unreachable], [0, 1]);
    server.links[0]!.send(numbered(1));
    assert.equal(counters.droppedSends, 1);
  });
}

test('what is sent between the fault of a peer and the word of it is dropped and counted', async (t) => {
  const { server, address, counters } = await listening(t);
  server.handle = (link) => queueMicrotask(() => link.send(numbered(1)));
  const peer = await dealer(t, address);
  peer.say(Buffer.concat([frame(0, 'one'), frame(0x80, 'x')]));
  await until(() => server.told.length > 0, 'the end of the link was told');
  assert.deepEqual([server.batches.length, counters.droppedSends], [1, 1]);
});

test('commands that say nothing to a listener are read over', async (t) => {
  const { server, address } = await listening(t);
  const peer = await dealer(t, address);
  peer.say(
    command('PONG', 'x'),
    command('SUBSCRIBE', 'x'),
    command('ERROR', '\0'),
    command('READY'),
    frame(COMMAND, ''),
  );
  peer.say(frame(COMMAND | LONG, Buffer.alloc(4096, 1)), frame(0, 'hello'));
  await until(() => peer.frames.length === 1, 'the echo is there');
  assert.deepEqual([server.links.length, server.told], [1, []]);
});

test('PING is answered by PONG with its context, also between the frames of a message', async (t) => {
  const { address, counters } = await listening(t);
  const peer = await dealer(t, address);
  const long = Buffer.alloc(50_000);
  peer.say(ping(''), ping('0123456789abcdef'), frame(MORE, long), ping('between'), frame(0, 'x'));
  peer.say(ping('y'.repeat(1000)), command('PING'), command('PING', '\0'), frame(0, 'hello'));
  await until(() => peer.frames.some((heard) => heard.flags === 0), 'the echo is there');
  assert.deepEqual(
    peer.frames.map(({ flags, body }) => [flags, body.toString()]),
    [
      [COMMAND, '\x04PONG'],
      [COMMAND, '\x04PONG0123456789abcdef'],
      [COMMAND, '\x04PONGbetween'],
      [COMMAND, `\x04PONG${'y'.repeat(16)}`],
      [COMMAND, '\x04PONG'],
      [COMMAND, '\x04PONG'],
      [0, 'hello'],
    ],
  );
  assert.equal(counters.droppedFrames, 1);
});

test('who sends PING without end and does not read is answered no more than a bound', async (t) => {
  const { server, address } = await listening(t, {}, `ipc://${join(await folder(t), 'main')}`);
  server.handle = () => {};
  const peer = await dealer(t, address);
  const before = peer.heardBytes;
  peer.socket.pause();
  const many = Buffer.concat(Array(1000).fill(ping('0123456789abcdef')));
  for (let round = 0; round < 400; round++) {
    if (!peer.socket.write(many)) await once(peer.socket, 'drain');
  }
  peer.say(frame(0, 'last'));
  await until(() => server.batches.length === 1, 'all was read, so nothing holds up the listener');
  server.handle = echo;
  peer.socket.resume();
  peer.say(frame(0, 'hello'));
  await until(() => peer.heard.includes('hello'), 'the connection is in use');
  const answered = peer.heardBytes - before;
  // what the system keeps for a socket, and 64 KiB
  assert.ok(answered > 10_000 && answered < 1024 * 1024, `${answered} bytes of PONG for 9,600,000 of PING`);
});

test('who asks without end, has no link of its own and does not read is cut off', async (t) => {
  const { server, address, reasons, counters } = await listening(t, {}, `ipc://${join(await folder(t), 'main')}`);
  server.handle = (link) => {
    link.send(new Uint8Array(10_000));
    link.close();
  };
  const [greedy, fair] = [await dealer(t, address), await dealer(t, address)];
  greedy.socket.pause();
  for (let round = 0; round < 1000 && !greedy.socket.destroyed; round++) {
    greedy.say(frame(0, numbered(round)));
    if (round % 10 === 0) await nextTurn();
  }
  await until(() => reasons.length > 0, 'it is cut off');
  assert.deepEqual(reasons, ['connection broken off: it does not read']);
  assert.ok(server.batches.length < 300, `${server.batches.length} answers`);
  for (let round = 1; round <= 300; round++) {
    fair.say(frame(0, numbered(round)));
    if (round % 10 === 0) await until(() => fair.frames.length === round, 'who reads is answered');
  }
  assert.deepEqual([server.told, counters.refusedHandshakes], [[], 0]);
});

test('what receivers throw when a link comes or goes is counted and ends nothing', async (t) => {
  const { server, address, counters } = await listening(t);
  const fail = () => {
    throw new Error('broken receiver');
  };
  server.onDown = fail;
  const dialling = transport(t, 'zmtp', { reconnectMs: 5 });
  const client = new Record();
  client.onUp = fail;
  const link = dialling.dial(address, client);
  await until(() => dialling.counters.faults === 1, 'it is up');
  link.send(numbered(1));
  await until(() => client.batches.length === 1, 'it works all the same');
  link.close();
  await until(() => counters.faults === 1, 'the listener told its end');
  const peer = await dealer(t, address);
  peer.say(frame(0, 'hello'));
  await until(() => peer.frames.length === 1, 'the listener goes on');
});

test('F46: 200 strangers that connect and say nothing disturb nobody, and hold up no close', async (t) => {
  const { server, address, close, counters } = await listening(t);
  const peer = await dealer(t, address);
  const strangers = await Promise.all(Array.from({ length: 200 }, () => knock(t, address)));
  const client = new Record();
  const link = transport(t, 'zmtp').dial(address, client);
  await until(() => client.up, 'a link comes up');
  for (let i = 0; i < 100; i++) {
    link.send(numbered(i));
    peer.say(frame(0, numbered(i)));
  }
  await until(() => client.batches.length === 100 && peer.frames.length === 100, 'all is echoed');
  assert.ok(strangers.every((stranger) => !stranger.closed && stranger.heardBytes === 64));
  assert.equal(server.links.length, 2);
  await close();
  await until(() => strangers.every((stranger) => stranger.closed), 'the strangers are gone too');
  assert.equal(counters.refusedHandshakes, 0);
});

test('a stranger that does not end its handshake is sent away after its time, at whatever place it stopped', async (t) => {
  const { server, address, reasons, counters } = await listening(t);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const begun = [Buffer.alloc(0), greeting().subarray(0, 30), greeting(), Buffer.concat([greeting(), Buffer.of(4)])];
  const friend = await dealer(t, address);
  const slow = await Promise.all(begun.map(() => knock(t, address)));
  for (const [index, bytes] of begun.entries()) if (bytes.length > 0) slow[index]!.say(bytes);
  await until(() => slow.every((stranger, index) => stranger.heardBytes >= (index > 1 ? 65 : 64)), 'all are met');
  t.mock.timers.tick(9_999);
  await nextTurn();
  assert.ok(slow.every((stranger) => !stranger.closed));
  t.mock.timers.tick(1);
  t.mock.timers.reset();
  await until(() => slow.every((stranger) => stranger.closed), 'they are sent away');
  assert.deepEqual(reasons, ['handshake refused: the handshake takes too long']);
  assert.equal(counters.refusedHandshakes, begun.length);
  friend.say(frame(0, 'hello'));
  await until(() => friend.frames.length === 1, 'who is ready stays');
  assert.deepEqual(server.told, []);
});

test('a connection that is reset in the middle of a frame loses that frame and ends its link, once', async (t) => {
  const { server, address, counters } = await listening(t);
  const [bad, mute, good] = [await dealer(t, address), await dealer(t, address), await dealer(t, address)];
  bad.say(frame(0, 'whole'), frame(0, Buffer.alloc(1000)).subarray(0, 500));
  mute.say(frame(0, Buffer.alloc(200)).subarray(0, 100));
  await until(() => bad.frames.length === 1, 'the whole one is echoed');
  bad.socket.resetAndDestroy();
  mute.socket.resetAndDestroy();
  await until(() => server.told.length > 0, 'it is told');
  good.say(frame(0, 'hello'));
  await until(() => good.frames.length === 1, 'others go on');
  assert.deepEqual(server.told, ['down: unreachable']);
  assert.deepEqual(
    server.batches.map((batch) => Buffer.from(batch).toString()),
    ['whole', 'hello'],
  );
  assert.deepEqual([counters.unreachable, counters.refusedHandshakes, counters.faults], [1, 0, 0]);
});

test('who goes within its handshake counts as refused, and who says nothing does not', async (t) => {
  const { server, address, reasons, counters, close } = await listening(t);
  const silent = await knock(t, address);
  await until(() => silent.heardBytes > 0, 'it is met');
  silent.socket.end();
  await until(() => silent.closed, 'it is gone');
  for (const bytes of [greeting().subarray(0, 1), greeting(), Buffer.concat([greeting(), Buffer.of(COMMAND)])]) {
    const stranger = await knock(t, address);
    stranger.say(bytes);
    await until(() => stranger.heardBytes > 0, 'it is met');
    stranger.socket.end();
    await until(() => stranger.closed, 'it is gone');
  }
  const friend = await dealer(t, address);
  friend.socket.end();
  await until(() => friend.closed, 'it is gone');
  await until(() => counters.refusedHandshakes === 3, 'they are counted');
  await close();
  assert.deepEqual([server.told, counters.refusedHandshakes, counters.unreachable], [[], 3, 0]);
  assert.deepEqual(reasons, ['handshake refused: it leaves within the handshake']);
});

test('who says all it has and ends its half is answered to the end', async (t) => {
  const { address } = await listening(t);
  const peer = await knock(t, address, { allowHalfOpen: true });
  peer.say(greeting(), ready('DEALER'), ...Array.from({ length: 1000 }, (_, i) => frame(0, numbered(i, 1000))));
  peer.socket.end();
  await until(() => peer.closed, 'the connection is over');
  assert.deepEqual(
    peer.frames.map(({ body }) => body.readUInt32LE()),
    [...Array(1000).keys()],
  );
});

test('a peer that does not read while much is sent to it has all of it in order when it comes back', async (t) => {
  const { server, address } = await listening(t);
  const [slow, good] = [await dealer(t, address), await dealer(t, address)];
  slow.say(frame(0, numbered(0)));
  await until(() => server.links.length === 1, 'it is known');
  slow.socket.pause();
  const [link] = server.links;
  for (let i = 1; i <= 20_000; i++) link!.send(numbered(i, 1000));
  good.say(frame(0, 'hello'));
  await until(() => good.frames.length === 1, 'another one is not held up');
  slow.socket.resume();
  await until(() => slow.heardBytes > 20_000 * 1009, 'all is there');
  assert.deepEqual(
    slow.frames.map(({ body }) => body.readUInt32LE()),
    [...Array(20_001).keys()],
  );
});

test('a peer that writes byte by byte is heard like any other', async (t) => {
  const { server, address } = await listening(t);
  const peer = await knock(t, address);
  const sent = [frame(0, ''), frame(0, 'x'), ping('abc'), frame(LONG, 'long'), frame(0, Buffer.alloc(300, 7))];
  for (const byte of Buffer.concat([greeting(), ready('DEALER'), ...sent])) {
    peer.say(Buffer.of(byte));
    await nextTurn();
  }
  await until(() => peer.frames.length === 5, 'all is answered');
  assert.deepEqual(
    peer.frames.map(({ body }) => body.toString('latin1')),
    ['', 'x', '\x04PONGabc', 'long', '\x07'.repeat(300)],
  );
  assert.equal(server.links.length, 1);
});

test('closing does not wait longer than its linger for a peer that does not read', async (t) => {
  const { server, address, close } = await listening(t, { lingerMs: 20 });
  const peer = await dealer(t, address);
  peer.say(frame(0, numbered(0)));
  await until(() => server.links.length === 1, 'it is known');
  peer.socket.pause();
  for (let i = 0; i < 20; i++) server.links[0]!.send(new Uint8Array(1024 * 1024));
  await close();
  peer.socket.resume();
  await until(() => peer.closed, 'the connection is over');
  assert.ok(peer.heardBytes < 20 * 1024 * 1024);
  assert.deepEqual(server.told, []);
});
