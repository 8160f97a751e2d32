import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { QueueMessage } from '@trunkline/subscriber/core';
import { events, QUEUE, queueParts, settled, stored, texts } from './bench.js';

test('a consumer is accepted when a restart would find its group, and misses nothing from then on', async () => {
  const parts = await queueParts();
  const provider = parts.provider();
  await settled(parts, provider.publish(QUEUE, 'before'));
  const { disk } = parts.made;
  disk.behaviour.flush = [500, 500];
  const got: QueueMessage[] = [];
  const client = parts.client();
  const consumption = client.consume(QUEUE, { group: 'g', start: 'latest', ack: 'manual' }, (message) => {
    got.push(message);
  });
  await parts.advance(300);
  assert.equal(consumption.state, 'pending', 'not stored yet');
  await parts.advance(300);
  assert.equal(consumption.state, 'active');
  parts.kill(client.connection);
  disk.behaviour.flush = [0, 2];
  await parts.made.restart();
  await parts.advance(3000);
  await settled(parts, provider.publish(QUEUE, 'while away'));
  parts.client().consume(QUEUE, { group: 'g', start: 'latest', ack: 'manual' }, (message) => void got.push(message));
  await stored(parts);
  assert.deepEqual(
    texts(got).map((text) => text.split(':')[0]),
    ['while away'],
  );
});

test('what is dropped before a consumer is accepted is told when it is', async () => {
  const parts = await queueParts({ maxMessages: 2, full: 'dropOldest' });
  const provider = parts.provider();
  await settled(parts, provider.publishMany(QUEUE, [{ body: 'a' }, { body: 'b' }]));
  parts.made.disk.behaviour.flush = [500, 500];
  const more = provider.publishMany(QUEUE, [{ body: 'c' }, { body: 'd' }, { body: 'e' }]);
  await parts.settle();
  const got: QueueMessage[] = [];
  const consumption = parts.client().consume(QUEUE, { group: 'g' }, (message) => void got.push(message));
  const told = events(consumption);
  await parts.advance(700);
  assert.equal(consumption.state, 'pending', 'its group is not stored yet');
  await parts.advance(2000);
  await more;
  assert.deepEqual(texts(got), ['d', 'e']);
  assert.deepEqual(told, ['active', 'gap 3 retention']);
});
