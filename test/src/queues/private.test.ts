import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { QueueMessage } from '@trunkline/subscriber/core';
import type { MemoryLink } from '../support/memory-link.js';
import { events, QUEUE, queueParts, DEAD as RING, settled, stored, texts } from './bench.js';

const bodies = (...texts: string[]) => texts.map((body) => ({ body }));

test('a private consumer of a queue that began anew, with sequences from 1, gets everything of it', async () => {
  const parts = await queueParts();
  const provider = parts.provider();
  const got: QueueMessage[] = [];
  const consumption = parts.client().consume(RING, {}, (message) => void got.push(message));
  const told = events(consumption);
  await stored(parts);
  await settled(parts, provider.publishMany(RING, bodies('a', 'b', 'c')));
  await stored(parts);
  // the ring ends with the process
  await parts.made.restart();
  // here before the consumer is
  const early = parts.provider();
  await settled(parts, early.publish(RING, 'd'));
  await parts.advance(3000);
  await settled(parts, provider.publishMany(RING, bodies('e', 'f')));
  await stored(parts);
  assert.deepEqual(texts(got), ['a', 'b', 'c', 'd', 'e', 'f']);
  assert.ok(told.includes('gap 0 history lost'), told.join());
});

test('nor does a store that was taken away make it deaf', async () => {
  const parts = await queueParts();
  const provider = parts.provider();
  const got: QueueMessage[] = [];
  parts.client().consume(QUEUE, {}, (message) => void got.push(message));
  await stored(parts);
  await settled(parts, provider.publishMany(QUEUE, bodies('a', 'b', 'c')));
  await stored(parts);
  parts.made.disk.wipe();
  await parts.made.restart();
  await parts.advance(3000);
  await settled(parts, parts.provider().publishMany(QUEUE, bodies('d', 'e')));
  await stored(parts);
  assert.deepEqual(texts(got), ['a', 'b', 'c', 'd', 'e']);
});

test('a private consumer that has seen nothing yet misses nothing while it is away', async () => {
  const parts = await queueParts();
  const provider = parts.provider();
  await settled(parts, provider.publishMany(QUEUE, bodies('before')));
  const client = parts.client();
  const got: QueueMessage[] = [];
  const consumption = client.consume(QUEUE, {}, (message) => void got.push(message));
  const told = events(consumption);
  await stored(parts);
  (client.connection.session!.link as MemoryLink).cut();
  await parts.settle();
  assert.equal(consumption.state, 'disconnected');
  await settled(parts, provider.publishMany(QUEUE, bodies('a', 'b')));
  parts.made.network.restore(parts.made.configuration.listen[0]!.address);
  await parts.advance(3000);
  await settled(parts, provider.publish(QUEUE, 'c'));
  await stored(parts);
  assert.deepEqual(
    [told, texts(got)],
    [
      ['active', 'disconnected', 'active'],
      ['a', 'b', 'c'],
    ],
  );
});
