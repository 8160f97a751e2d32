import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Provider } from '@trunkline/publisher/core';
import { Client } from '@trunkline/subscriber/core';
import { items, member, QUEUE, queueParts, settled, stored } from './queue-support.js';

test('F86, F51: integers to 64 bits and empty bodies come back exact after a restart', async () => {
  const parts = await queueParts();
  const provider = parts.provider();
  const attrs = { big: 9007199254740993n, most: 2n ** 64n - 1n, least: -(2n ** 63n) };
  await settled(parts, provider.publish(QUEUE, '{"n": 9007199254740993}', { attrs }));
  await settled(parts, provider.publish(QUEUE, new Uint8Array(0)));
  await parts.made.restart();
  await parts.advance(3000);
  const one = await member(parts);
  assert.deepEqual({ ...one.got[0]!.attrs }, attrs);
  assert.equal(one.got[0]!.text(), '{"n": 9007199254740993}');
  assert.equal(one.got[1]!.body.length, 0);
});

test('F87: publishes that are refused do not hold up acknowledgements of the same connection', async () => {
  const parts = await queueParts();
  const connection = parts.dial();
  const client = new Client(connection);
  const provider = new Provider();
  provider.attach(connection);
  await items(parts, provider, 50);
  parts.made.disk.behaviour.capacity = 0;
  await assert.rejects(settled(parts, provider.publish(QUEUE, 'x')), { code: 'STORE_FULL', retryable: true });
  const consumption = client.consume(QUEUE, { group: 'g' }, () => {});
  for (let round = 0; round < 5; round++) {
    await settled(parts, provider.publish(QUEUE, 'x')).catch(() => {});
  }
  assert.equal(consumption.state, 'active');
  assert.equal(parts.made.dispatcher.queues.find(QUEUE)!.depth, 0);
  parts.made.disk.behaviour.capacity = Number.POSITIVE_INFINITY;
  await parts.advance(1000);
  assert.equal(await settled(parts, provider.publish(QUEUE, 'y')), 51);
});

test('F88: a first consumer does not take the whole backlog', async () => {
  const parts = await queueParts();
  await items(parts, parts.provider(), 400);
  const handled: Record<string, number> = { a: 0, b: 0 };
  const slow = (name: string) => async () => {
    await parts.sleep(10);
    handled[name]!++;
  };
  parts.client().consume(QUEUE, { group: 'g', window: 10 }, slow('a'));
  await parts.advance(1000);
  parts.client().consume(QUEUE, { group: 'g', window: 10 }, slow('b'));
  await parts.advance(4000);
  assert.equal(handled.a! + handled.b!, 400);
  assert.ok(handled.b! > 120, `b handled ${handled.b}`);
});

test('F97: a group that comes and goes is one group, listed once', async () => {
  const parts = await queueParts();
  const client = parts.client();
  for (let round = 0; round < 10; round++) {
    const one = await member(parts);
    await one.client.close();
    await stored(parts);
  }
  const [queue] = await settled(parts, client.queues.list());
  assert.deepEqual(
    queue!.groups.map(({ name, online }) => [name, online]),
    [['g', false]],
  );
});

test('F98: the depth is counted from the store after a restart, and comes to 0', async () => {
  const parts = await queueParts();
  await items(parts, parts.provider(), 30);
  for (let round = 0; round < 2; round++) {
    parts.made.disk.damage(1, 5, 5);
    await parts.made.restart();
    await parts.advance(3000);
  }
  const queue = () => parts.made.dispatcher.queues.find(QUEUE)!;
  assert.equal(queue().depth, 30);
  const gaps: number[] = [];
  const consumption = parts.client().consume(QUEUE, { group: 'g' }, () => {});
  consumption.on('gap', ({ count }) => gaps.push(count));
  await stored(parts);
  await stored(parts);
  assert.equal(queue().depth, 0);
  assert.deepEqual([queue().bytes, gaps.length], [0, 1]);
});
