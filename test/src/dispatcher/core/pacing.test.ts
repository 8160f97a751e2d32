import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DispatcherWorld } from '../../support/dispatcher-world.js';

const CODE = 100;
const STORM = 3000;

/** A storm at one provider that has answered nothing yet. */
async function storm(requestWindow: number) {
  const service = { code: CODE, requestWindow, resendAfter: '2s', limits: { maxStreams: 10_000 } };
  const world = await DispatcherWorld.start([service]);
  const provider = await world.provider(CODE);
  const subscriber = await world.peer();
  for (let request = 1; request <= STORM; request++) subscriber.request(CODE, request, { params: { request } });
  await world.settle();
  return { world, provider };
}

test('a provider that answers fast is asked for more at a time, up to requestWindow', async () => {
  const { world, provider } = await storm(300);
  const rounds: number[] = [];
  for (let asked = provider.take('REQUEST'); asked.length > 0; asked = provider.take('REQUEST')) {
    rounds.push(asked.length);
    for (const request of asked) provider.answer(request);
    await world.settle();
  }
  assert.deepEqual(rounds.slice(0, 4), [64, 128, 256, 300]);
  assert.equal(Math.max(...rounds), 300);
  assert.equal(
    rounds.reduce((sum, count) => sum + count, 0),
    STORM,
  );
});

test('a provider that takes its time is not given a longer queue, and keeps no long one', async () => {
  const { world, provider } = await storm(1000);
  let asked = provider.take('REQUEST');
  for (let round = 0; round < 2; round++) {
    for (const request of asked) provider.answer(request);
    await world.settle();
    asked = provider.take('REQUEST');
  }
  assert.equal(asked.length, 256);
  const depths: number[] = [];
  // slow from here on: the whole queue takes more than half of `resendAfter`
  for (let round = 0; round < 6; round++) {
    await world.advance(1500);
    for (const request of asked) provider.answer(request);
    await world.settle();
    asked = provider.take('REQUEST');
    depths.push(asked.length);
  }
  assert.deepEqual([depths[0]! < 256, depths.at(-1)], [true, 64]);
});
