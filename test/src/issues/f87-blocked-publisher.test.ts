import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Provider } from '@trunkline/publisher/core';
import { Client, type QueueMessage } from '@trunkline/subscriber/core';
import { QUEUE, queueParts, settled, stored } from '../queues/bench.js';

test('F87: publishes that are refused hold up no acknowledgement of the same connection; publishing resumes', async () => {
  const parts = await queueParts();
  const connection = parts.dial();
  const client = new Client(connection);
  const provider = new Provider();
  provider.attach(connection);
  const held: QueueMessage[] = [];
  client.consume(QUEUE, { group: 'g', ack: 'manual', window: 100 }, (message) => void held.push(message));
  const bodies = (count: number) => Array.from({ length: count }, () => ({ body: 'x'.repeat(1000) }));
  await settled(parts, provider.publishMany(QUEUE, bodies(20)));
  await stored(parts);
  const { disk } = parts.made;
  disk.behaviour.capacity = disk.usage().bytes;
  const refused = await settled(parts, Promise.allSettled(bodies(50).map(({ body }) => provider.publish(QUEUE, body))));
  for (const each of refused) {
    assert.equal(each.status, 'rejected');
    assert.deepEqual([each.reason.code, each.reason.retryable], ['STORE_FULL', true]);
  }
  assert.equal(held.length, 20, 'what was refused was not taken');
  await settled(parts, Promise.all(held.splice(0).map((message) => message.ack())));
  assert.equal(parts.made.dispatcher.queues.find(QUEUE)!.depth, 0);
  disk.behaviour.capacity = Number.POSITIVE_INFINITY;
  await parts.advance(1000);
  assert.equal(await settled(parts, provider.publish(QUEUE, 'again')), 21);
  await stored(parts);
  assert.deepEqual(
    held.map((message) => message.text()),
    ['again'],
  );
});

test('F87: a publisher without a dispatcher keeps no more than its bound, and says what it did not take', async () => {
  const parts = await queueParts();
  const provider = parts.provider();
  const codes = new Map<string, number>();
  const most = 65_536;
  const publishes = Array.from({ length: most + 100 }, () =>
    provider.publish(QUEUE, 'x').catch(({ code }) => codes.set(code, (codes.get(code) ?? 0) + 1)),
  );
  assert.equal(provider.unconfirmed, most);
  await provider.close();
  await Promise.all(publishes);
  assert.deepEqual(
    [...codes],
    [
      ['LIMIT_EXCEEDED', 100],
      ['DISCONNECTED', most],
    ],
  );
});
