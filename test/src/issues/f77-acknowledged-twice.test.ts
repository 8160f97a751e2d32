import assert from 'node:assert/strict';
import { test } from 'node:test';
import { payload, Type } from '@trunkline/proto';
import type { QueueMessage } from '@trunkline/subscriber/core';
import { QUEUE, queueParts, settled, stored, texts } from '../queues/bench.js';

test('F77: ack twice, ack after nack, of another session, of a number never seen: each fails alone, none hangs', async () => {
  const parts = await queueParts({ ackTimeout: '1h' });
  const provider = parts.provider();
  const client = parts.client();
  const held: QueueMessage[] = [];
  const consumption = client.consume(QUEUE, { group: 'g', ack: 'manual', window: 10 }, (message) => {
    held.push(message);
  });
  const other: QueueMessage[] = [];
  const second = parts.client().consume(QUEUE, { group: 'h', ack: 'manual' }, (message) => void other.push(message));
  await settled(parts, provider.publishMany(QUEUE, [{ body: 'a' }, { body: 'b' }, { body: 'c' }, { body: 'd' }]));
  await stored(parts);
  const [a, b, c, d] = held.splice(0);
  await settled(parts, a!.ack());
  await assert.rejects(settled(parts, a!.ack()), { code: 'NOT_HELD' });
  await settled(parts, b!.nack({ delayMs: 1000 }));
  await assert.rejects(settled(parts, b!.ack()), { code: 'NOT_HELD' });
  await assert.rejects(settled(parts, b!.extend()), { code: 'NOT_HELD' });
  // what no SDK does: a number never seen, a foreign line and half a range, by hand
  const { session } = client.connection;
  const failures: unknown[] = [];
  const line = consumption.target!.line;
  const settle = (to: number, call: number, ranges: number[]) =>
    session!.send({ type: Type.ACK, code: QUEUE, line: to }, payload.settle.encode({ call, ranges }));
  const from = parts.wire.length;
  settle(line, 77_001, [999, 999]);
  settle(second.target!.line, 77_002, [1, 1]);
  settle(line, 77_003, [3]);
  settle(line, 77_004, [4, 2]);
  await stored(parts);
  for (const { type } of parts.wire.slice(from)) if (type === 'SETTLED') failures.push(type);
  assert.equal(failures.length, 4, 'each is answered');
  // the other messages in flight are untouched, and the other consumer's too
  await settled(parts, c!.ack());
  await settled(parts, d!.ack());
  for (const message of other) await settled(parts, message.ack());
  await parts.advance(1500);
  assert.deepEqual(texts(held), ['b:2']);
  assert.equal(consumption.state, 'active');
});

test('F77: an ack of a message that an earlier session had', async () => {
  const parts = await queueParts();
  const provider = parts.provider();
  const client = parts.client();
  const held: QueueMessage[] = [];
  client.consume(QUEUE, { group: 'g', ack: 'manual' }, (message) => void held.push(message));
  await settled(parts, provider.publish(QUEUE, 'a'));
  await stored(parts);
  await parts.made.restart();
  await parts.advance(3000);
  const [before, after] = held;
  await assert.rejects(settled(parts, before!.ack()), { code: 'NOT_HELD' });
  assert.deepEqual(texts(held), ['a', 'a:2']);
  await settled(parts, after!.ack());
  assert.equal(parts.made.dispatcher.queues.find(QUEUE)!.depth, 0);
});
