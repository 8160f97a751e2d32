// F3: everybody who waits for one request gets its answer.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../support/wait.js';
import { watch } from './fixtures/watch.js';
import { flows, World } from './fixtures/world.js';

test('those who ask while the provider thinks are all accepted by its one answer (F3)', async () => {
  await using world = await World.start({ services: [{ code: 1 }] });
  const provider = await world.provider({ 1: { answerAfter: 300, every: 20 } });
  const [one, two] = [await world.client(), await world.client()];
  const first = watch(one.subscribe(1));
  await until(async () => (await provider.counts()).startedCount === 1, 'the provider was asked');
  const second = watch(two.subscribe(1));
  await until(async () => (await world.streams())[0]!.subscribers === 2, 'both wait');
  assert.deepEqual([first.accepted, second.accepted], [0, 0]);
  await Promise.all([flows(first), flows(second)]);
  assert.deepEqual([first.accepted, second.accepted], [1, 1]);
  assert.deepEqual((await provider.report()).started, { '1:null': 1 });
});

test('those who ask while the provider thinks are all refused, and nothing is left (F3)', async () => {
  await using world = await World.start({ services: [{ code: 1 }] });
  const provider = await world.provider({ 1: { answerAfter: 300, refuse: 'REFUSED' } });
  const [one, two] = [await world.client(), await world.client()];
  const first = watch(one.subscribe(1));
  await until(async () => (await provider.counts()).startedCount === 1, 'the provider was asked');
  const second = watch(two.subscribe(1));
  await until(() => first.ends.length + second.ends.length === 2, 'both are told');
  for (const { errors, ends, accepted } of [first, second]) {
    assert.deepEqual([errors, ends, accepted], [['REFUSED'], ['REFUSED'], 0]);
  }
  await world.empty();
  assert.deepEqual([one.counts.subscriptions, two.counts.subscriptions], [0, 0]);
  const third = watch(two.subscribe(1));
  await until(() => third.ends.length === 1, 'the third is told');
  assert.equal((await provider.counts()).startedCount, 2);
  await world.empty();
});
