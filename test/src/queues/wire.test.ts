import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  encodeMeta,
  Flag,
  HEADER_BYTES,
  type Meta,
  type payload as Payload,
  payload,
  Type,
  writeHeader,
} from '@trunkline/proto';
import { Provider } from '@trunkline/publisher/core';
import { Client, type QueueMessage } from '@trunkline/subscriber/core';
import { DispatcherWorld, type RawPeer } from '../support/dispatcher-world.js';
import { QUEUE, queueParts, settled, stored } from './bench.js';

interface Raw {
  readonly number: number;
  readonly code?: number;
  readonly line?: number;
  readonly meta?: Uint8Array | Partial<Meta>;
  readonly body?: string;
  readonly flags?: number;
}

/** Puts a PUBLISH on the wire as it is. */
function publish(peer: RawPeer, { number, code = QUEUE, line = 1, meta = {}, body = 'x', flags = 0 }: Raw): void {
  const bytes = meta instanceof Uint8Array ? meta : encodeMeta(meta);
  const text = new TextEncoder().encode(body);
  const length = HEADER_BYTES + bytes.length + text.length;
  const message = new Uint8Array(length);
  writeHeader(message, 0, length, {
    type: Type.PUBLISH,
    code,
    line,
    sequence: number,
    flags,
    metaLength: bytes.length,
  });
  message.set(bytes, HEADER_BYTES);
  message.set(text, HEADER_BYTES + bytes.length);
  peer.session.sendData(message, 0, length, 1);
}

function read<T>(peer: RawPeer, type: string, codec: Payload.Codec<T>): T[] {
  return peer.take(type).map(({ raw }) => codec.decode(raw));
}

async function world(options: object = {}) {
  const made = await DispatcherWorld.start([{ code: QUEUE, kind: 'queue', storage: 'memory', ...options }]);
  return { made, peer: await made.peer() };
}

test('F50: a PUBLISH whose meta cannot be decoded is refused alone; the ones around it are stored', async () => {
  const { made, peer } = await world();
  const wrong = [
    Uint8Array.of(0x0a, 2, 0xff, 0xfe),
    Uint8Array.of(0x12, 5, 1),
    Uint8Array.of(0x1a, 6, 0x0a, 1, 0xff, 0x12, 1, 0x28),
  ];
  publish(peer, { number: 1 });
  for (const [index, meta] of wrong.entries()) publish(peer, { number: index + 2, meta });
  publish(peer, { number: 5, meta: { key: 'k', attrs: { n: 1, s: 'é', b: true, d: 0.5 } } });
  await made.settle();
  const answers = read(peer, 'PUBLISHED', payload.published);
  assert.deepEqual(
    answers.flatMap(({ stored }) => stored),
    [1, 1, 1, 5, 1, 2],
  );
  const refused = answers.flatMap((answer) => answer.refused);
  assert.deepEqual(
    refused.map(({ first, count, code, retryable }) => [first, count, code, retryable]),
    [[2, 3, 'META_INVALID', false]],
  );
  assert.equal(made.dispatcher.queues.find(QUEUE)!.depth, 2);
  assert.equal(peer.session.credit, 4 * 1024 * 1024 - peer.session.outstanding);
});

test('F50: a body that no filter can read matches nothing and holds nothing up', async () => {
  const { made, peer } = await world();
  const ask = (request: number, group: string, filter: string) =>
    peer.request(QUEUE, request, { group, filter, window: 10 });
  ask(1, 'g', 'body.n == 1');
  ask(2, 'h', '');
  await made.settle();
  const [filtered, all] = peer.take('ACCEPTED').map(({ line }) => line);
  publish(peer, { number: 1, body: '{"n":', flags: Flag.JSON });
  publish(peer, { number: 2, body: '{"n":1}', flags: Flag.JSON });
  await made.settle();
  const got = peer.take('RESPONSE');
  assert.deepEqual(
    got.filter(({ line }) => line === filtered).map(({ sequence }) => sequence),
    [2],
  );
  assert.deepEqual(
    got.filter(({ line }) => line === all).map(({ sequence }) => sequence),
    [1, 2],
  );
  assert.equal(made.dispatcher.queues.find(QUEUE)!.groups.get('g')!.position, 1);
});

test('a publisher with another name for each message is answered as any other; unknown codes are refused', async () => {
  const { made, peer } = await world();
  for (let line = 1; line <= 3000; line++)
    publish(peer, { number: 1, line, code: line % 2 === 0 ? QUEUE : 5000 + line });
  publish(peer, { number: 0 });
  await made.settle();
  const answers = read(peer, 'PUBLISHED', payload.published);
  const codes = answers.flatMap(({ refused }) => refused.map(({ code }) => code));
  assert.equal(codes.filter((code) => code === 'UNKNOWN_SERVICE').length, 1500);
  assert.equal(codes.filter((code) => code === 'REQUEST_INVALID').length, 1);
  assert.equal(
    answers.reduce((sum, { stored: triples }) => sum + triples.length / 3, 0),
    1500,
  );
});

test('acknowledgements that are wrong as such are answered as failed, to their session alone', async () => {
  const { made, peer } = await world();
  const other = await made.peer();
  publish(peer, { number: 1 });
  peer.request(QUEUE, 1, { group: 'g', window: 10 });
  await made.settle();
  const { line } = peer.take('ACCEPTED')[0]!;
  const settle = (
    from: RawPeer,
    on: number,
    call: number,
    ranges: number[],
    more: object = {},
    type: number = Type.ACK,
  ) => from.session.send({ type, code: QUEUE, line: on }, payload.settle.encode({ call, ranges, ...more }));
  settle(other, line, 1, [1, 1]);
  settle(other, line, 2, [1]);
  settle(other, 999_999, 3, [1]);
  settle(peer, line, 4, [1]);
  settle(peer, line, 5, [2, 1]);
  settle(peer, line, 6, [1, 1], { delayMs: 2 ** 40 }, Type.NACK);
  settle(
    peer,
    line,
    7,
    Array.from({ length: 20_000 }, (_, index) => 10 + 2 * Math.floor(index / 2)),
  );
  await made.settle();
  const told = (from: RawPeer) =>
    read(from, 'SETTLED', payload.settled).map(({ call, code, failed }) => [call, code, failed.length > 0]);
  assert.deepEqual(told(other), [
    [1, 'NOT_SUBSCRIBED', true],
    [2, 'NOT_SUBSCRIBED', true],
    [3, 'NOT_SUBSCRIBED', true],
  ]);
  assert.deepEqual(told(peer), [
    [4, 'REQUEST_INVALID', true],
    [5, 'REQUEST_INVALID', true],
    [6, 'OPTION_INVALID', true],
    [7, 'NOT_HELD', true],
  ]);
  assert.equal(made.dispatcher.queues.find(QUEUE)!.groups.get('g')!.outstanding, 1);
  settle(peer, line, 8, [1, 1]);
  await made.settle();
  assert.deepEqual(told(peer), [[8, '', false]]);
});

test('answers of thousands of ranges reach a process that takes only short messages', async () => {
  const parts = await queueParts({ maxMessage: 100 });
  const connection = parts.dial({ maxMessage: 16 * 1024 });
  const client = new Client(connection);
  const provider = new Provider();
  provider.attach(connection);
  await parts.settle();
  const outcomes = Promise.allSettled(
    Array.from({ length: 4000 }, (_, index) => provider.publish(QUEUE, 'x'.repeat(index % 2 === 0 ? 1 : 100))),
  );
  const codes = (await settled(parts, outcomes)).map((each) =>
    each.status === 'fulfilled' ? 'stored' : (each.reason as { code: string }).code,
  );
  assert.deepEqual([...new Set(codes)], ['stored', 'MESSAGE_TOO_LARGE']);
  const held: QueueMessage[] = [];
  client.consume(QUEUE, { group: 'g', ack: 'manual', window: 4000 }, (message) => void held.push(message));
  await stored(parts);
  assert.equal(held.length, 2000);
  const even = held.filter(({ sequence }) => sequence % 2 === 0);
  await settled(parts, Promise.all(even.map((message) => message.ack())));
  assert.equal(parts.made.dispatcher.queues.find(QUEUE)!.groups.get('g')!.outstanding, 1000);
  await assert.rejects(held[0]!.nack({ reason: 'x'.repeat(1001) }), { code: 'OPTION_INVALID' });
  const long = client.consume(QUEUE, { group: 'x'.repeat(70 * 1024 * 1024) }, () => {});
  let ended = '';
  long.on('end', ({ code }) => {
    ended = code;
  });
  await stored(parts);
  assert.equal(ended, 'MESSAGE_TOO_LARGE');
});
