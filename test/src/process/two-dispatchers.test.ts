// A bound provider with more than one dispatcher, one after the other or at a time, and subscribers that know two.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../support/wait.js';
import { watch } from './fixtures/watch.js';
import { flows, freePort, World } from './fixtures/world.js';

test('a dispatcher that was killed and restarted dials its static provider again, which serves nothing twice', async () => {
  const bind = `tcp://127.0.0.1:${await freePort()}`;
  // neither end can wait for a heartbeat to see that the other one is gone
  await using world = await World.start({ session: { heartbeat: '10m' }, services: [{ code: 1, providers: [bind] }] });
  const limits = { heartbeat: 600_000 };
  const provider = await world.provider({ 1: { every: 10 } }, { bind, limits });
  const client = await world.client({ limits });
  const seen = watch(client.subscribe(1));
  await flows(seen);
  for (let round = 1; round <= 3; round++) {
    await world.restartDispatcher();
    await until(() => seen.accepted === round + 1, 'the subscriber is back');
    await flows(seen);
    await until(async () => (await provider.counts()).active === 1, 'what the killed one had asked for has ended');
    const { started, stopped } = await provider.report();
    assert.deepEqual([started, stopped], [{ '1:null': round + 1 }, { '1:null': round }]);
  }
  assert.deepEqual([seen.disorder, seen.ends], [0, []]);
});

test('two dispatchers share a bound provider; the end of one is nothing to the subscribers of the other', async () => {
  const bind = `tcp://127.0.0.1:${await freePort()}`;
  const services = [{ code: 1, providers: [bind] }];
  await using one = await World.start({ services });
  await using two = await World.start({ services });
  const provider = await one.provider({ 1: { every: 10 } }, { bind });
  const [first, second] = [watch((await one.client()).subscribe(1)), watch((await two.client()).subscribe(1))];
  await Promise.all([flows(first), flows(second)]);
  assert.deepEqual((await provider.report()).active, ['1:null', '1:null']);
  await one.dispatcher.kill();
  await until(async () => (await provider.counts()).active === 1, 'the one of the killed dispatcher has ended');
  await flows(second);
  assert.deepEqual([second.statuses, second.holes, second.disorder], [['live: '], 0, 0]);
  two.dispatcher.signal('SIGTERM');
  await two.dispatcher.ended();
  await until(async () => (await provider.counts()).active === 0, 'and so has the other one');
});

test('a subscriber that knows two dispatchers goes to the one that is there', async () => {
  const bind = `tcp://127.0.0.1:${await freePort()}`;
  const services = [{ code: 1, providers: [bind] }];
  await using one = await World.start({ services });
  await using two = await World.start({ services });
  await one.provider({ 1: { every: 10 } }, { bind });
  const client = await two.client({ attemptMs: 200 }, [one.address, two.address]);
  const seen = watch(client.subscribe(1));
  await flows(seen);
  assert.equal((await one.streams()).length, 1);
  await one.dispatcher.kill();
  await until(() => seen.accepted === 2, 'it is with the other one');
  await flows(seen);
  assert.equal((await two.streams()).length, 1);
  await one.startDispatcher();
  await two.dispatcher.kill();
  await until(() => seen.accepted === 3, 'and back');
  await flows(seen);
  assert.deepEqual([seen.disorder, seen.ends, seen.errors], [0, [], []]);
});
