import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Subscription } from '@trunkline/publisher/core';
import type { MemoryLink } from '../support/memory-link.js';
import { FRONT, Parts } from './support.js';

const item = 'x'.repeat(1000);

/** Offers so many items in a loop; returns how many were taken. */
function flood(source: Subscription, count: number): number {
  let taken = 0;
  for (let index = 0; index < count; index++) if (source.respond(item, { key: `${taken}` })) taken++;
  return taken;
}

async function flooded(consume: boolean) {
  const parts = await Parts.start([{ code: 100, overflow: ['block'] }], { session: { outbox: '64KiB' } });
  parts.made.world.tap = () => {};
  const provider = parts.provider();
  let source: Subscription | undefined;
  provider.provide(100, (subscription) => {
    source = subscription;
  });
  const client = parts.client();
  const got: string[] = [];
  let release = () => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  client.subscribe(100, {}, (message) => {
    got.push(message.key);
    return consume ? undefined : gate;
  });
  await parts.settle();
  return { parts, provider, source: source!, got, release };
}

test('F38: a provider in a loop while the dispatcher stands still is told, holds a bounded amount, and loses nothing taken', async () => {
  const { parts, source, got } = await flooded(true);
  const [link] = parts.made.network.links(FRONT) as [MemoryLink];
  const accepted = link.peer!;
  const before = process.memoryUsage().arrayBuffers;
  const taken = flood(source, 100_000);
  const { receiveWindow } = parts.made.configuration.session;
  assert.ok(taken >= 1 && taken * 1000 < receiveWindow + 2000, `${taken} were taken`);
  assert.ok(process.memoryUsage().arrayBuffers - before < 2 * receiveWindow + 1e6);
  // every further offer is refused until there is room, which is told
  let room = false;
  const drained = source.drained().then(() => {
    room = true;
  });
  assert.equal(source.respond(item), false);
  assert.equal(room, false);
  await parts.settle();
  await drained;
  assert.deepEqual(
    got,
    Array.from({ length: taken }, (_, index) => `${index}`),
  );
  assert.equal(accepted.closed, false);
});

test('F38: a subscriber with a slow handler slows the provider; the dispatcher holds a bounded amount', async () => {
  const { parts, source, got, release } = await flooded(false);
  let taken = 0;
  for (let round = 0; round < 50; round++) {
    for (let index = 0; index < 1000; index++) if (source.respond(item, { key: `${taken}` })) taken++;
    await parts.settle();
  }
  const { receiveWindow } = parts.made.configuration.session;
  assert.ok(taken * 1000 < 3 * receiveWindow, `${taken} were taken`);
  assert.deepEqual(got, ['0']);
  release();
  await parts.advance(1000);
  assert.deepEqual(
    got,
    Array.from({ length: taken }, (_, index) => `${index}`),
  );
});
