import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FRONT, Parts } from './support.js';

test('F30: 500 subscribers with 5 subscriptions each come back spread over time, and the provider gets each once', async () => {
  const parts = await Parts.start([{ code: 100 }]);
  const { world } = parts.made;
  let started = 0;
  const provider = parts.provider();
  provider.provide(100, () => void started++);
  const clients = Array.from({ length: 500 }, () => parts.client());
  for (const [index, client] of clients.entries()) {
    // three of everybody, two of its own
    for (const params of ['a', 'b', 'c', index, -index - 1]) client.subscribe(100, { params });
  }
  await parts.advance(1000);
  assert.equal(started, 1003);
  parts.made.network.cut(FRONT);
  parts.made.network.forget(FRONT);
  await parts.advance(60_000);
  started = 0;
  const arrivals = new Map<number, number>();
  const record = world.tap;
  world.tap = (from, batch) => {
    const before = parts.wire.length;
    record(from, batch);
    if (parts.wire.slice(before).some(({ type }) => type === 'HELLO')) {
      arrivals.set(world.time, (arrivals.get(world.time) ?? 0) + 1);
    }
  };
  await parts.made.restart();
  await parts.advance(30_000);
  assert.ok(clients.every(({ state }) => state === 'connected'));
  assert.equal(started, 1003);
  assert.equal(parts.made.dispatcher.registry.streamCount, 1003);
  assert.ok(arrivals.size > 20, `${arrivals.size} moments`);
  assert.ok(Math.max(...arrivals.values()) < 100, 'no moment at which most of them came');
});
