// Queues that are declared at run time are there after every kind of restart, as they were declared; and gone once deleted.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client, QueueInfo } from '@trunkline/subscriber';
import { World } from '../fixtures/world.js';
import { publisher } from './members.js';

const DISK = 77;
const RING = 78;

async function find(client: Client, code: number): Promise<QueueInfo | undefined> {
  return (await client.queues.list()).find((queue) => queue.code === code);
}

test('what was declared, changed, purged and deleted at run time survives kill -9 and SIGTERM', async () => {
  await using world = await World.start({ services: [{ code: 1 }], dataDirectory: 'data' });
  await using provider = await publisher(world);
  const client = await world.client();
  const stopAndStart = async () => {
    world.dispatcher.signal('SIGTERM');
    assert.equal((await world.dispatcher.ended()).code, 0);
    await world.startDispatcher();
  };
  await client.queues.declare(DISK, { maxMessages: 3, full: 'refuse' }, 'orders');
  await client.queues.declare(RING, { storage: 'memory', maxMessages: 2, full: 'dropOldest' });
  await world.restartDispatcher();
  const [disk, ring] = [await find(client, DISK), await find(client, RING)];
  assert.deepEqual([disk?.name, disk?.storage, disk?.declaredBy], ['orders', 'disk', 'admin']);
  assert.deepEqual([ring?.storage, ring?.declaredBy], ['memory', 'admin']);

  const bodies = ['a', 'b', 'c'].map((body) => ({ body }));
  await provider.publishMany(DISK, bodies);
  await provider.publishMany(RING, bodies);
  assert.equal((await find(client, RING))?.messages, 2, 'its bound');
  await stopAndStart();
  assert.deepEqual(
    (await client.queues.peek(DISK)).map(({ sequence, text }) => [sequence, text]),
    [
      [1, 'a'],
      [2, 'b'],
      [3, 'c'],
    ],
  );
  assert.equal((await find(client, RING))?.messages, 0, 'memory is memory');
  await assert.rejects(provider.publish(DISK, 'd'), { code: 'QUEUE_FULL' });

  await client.queues.declare(DISK, { maxMessages: 4, full: 'refuse' }, 'orders');
  await world.restartDispatcher();
  assert.equal(await provider.publish(DISK, 'd'), 4, 'the changed bound');
  await assert.rejects(provider.publish(DISK, 'e'), { code: 'QUEUE_FULL' });

  assert.equal(await client.queues.purge(DISK), 4);
  await stopAndStart();
  assert.equal((await find(client, DISK))?.messages, 0, 'what was purged stays so');
  assert.equal(await provider.publish(DISK, 'f'), 5, 'sequences go on');

  for (const code of [DISK, RING]) assert.equal(await client.queues.delete(code), true);
  await world.restartDispatcher();
  assert.deepEqual(await client.queues.list(), []);
  await assert.rejects(provider.publish(DISK, 'g'), { code: 'UNKNOWN_SERVICE' });
});
