// Rule 13: a process may subscribe and provide over one connection, and two may subscribe to each other.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect as connectProvider } from '@trunkline/publisher';
import { until } from '../support/wait.js';
import type { Child } from './fixtures/child.js';
import { type Seen, watch } from './fixtures/watch.js';
import { flows, World } from './fixtures/world.js';

interface Report {
  readonly seen: Seen;
  readonly active: number;
}

async function both(world: World, name: string, provides: number): Promise<Child> {
  const child = world.child('./both-process.js');
  await child.call('open', world.address, name);
  await child.call('provide', provides);
  return child;
}

async function receives(child: Child): Promise<Seen> {
  const { seen: before } = await child.call<Report>('report');
  let seen = before;
  await until(async () => {
    ({ seen } = await child.call<Report>('report'));
    return seen.count > before.count + 2;
  }, 'it receives');
  return seen;
}

test('one process in both roles over one connection, also with itself', async () => {
  await using world = await World.start({ services: [{ code: '1-2' }] });
  const client = await world.client({ name: 'both' });
  await using provider = await connectProvider(client.connection);
  for (const code of [1, 2]) {
    provider.provide(code, (subscription) => {
      const timer = setInterval(() => subscription.respond({ from: code }), 10);
      return () => clearInterval(timer);
    });
  }
  const own = watch(client.subscribe(1));
  const others = watch((await world.client()).subscribe(2));
  await Promise.all([flows(own), flows(others)]);
  assert.deepEqual((await world.sessions()).filter(({ name }) => name === 'both').length, 1);
  await world.restartDispatcher();
  await Promise.all([flows(own), flows(others)]);
  assert.deepEqual([own.disorder, others.disorder, provider.subscriptions], [0, 0, 2]);
});

test('two processes subscribe to each other; one is killed and comes back', async () => {
  await using world = await World.start({ services: [{ code: '1-2' }] });
  const one = await both(world, 'one', 1);
  let two = await both(world, 'two', 2);
  await one.call('subscribe', 2);
  await two.call('subscribe', 1);
  await receives(one);
  await receives(two);
  assert.equal((await world.sessions()).length, 2);
  await two.kill();
  await until(async () => (await one.call<Report>('report')).active === 0, 'nobody wants what the first provides');
  await until(async () => (await one.call<Report>('report')).seen.state === 'stale', 'the first is told');
  two = await both(world, 'two again', 2);
  await two.call('subscribe', 1);
  const seen = await receives(one);
  await receives(two);
  assert.deepEqual(seen.statuses, ['live: ', 'stale: provider lost', 'live: new generation']);
  assert.deepEqual([seen.accepted, seen.disorder, (await one.call<Report>('report')).active], [1, 0, 1]);
  // one role leaves, the other one stays
  await two.call('closeClient');
  await until(async () => (await one.call<Report>('report')).active === 0, 'the subscriber left');
  await receives(one);
});
