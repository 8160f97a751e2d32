// A provider that hangs instead of dying: its connection stands, it just says nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../support/wait.js';
import { watch } from './fixtures/watch.js';
import { flows, World } from './fixtures/world.js';

const silence = { probeAfter: '200ms', probeMisses: 2 };

test('a provider that hangs for a while is stale, and goes on where it was', async () => {
  await using world = await World.start({ session: { heartbeat: '1m' }, services: [{ code: 1, ...silence }] });
  const provider = await world.provider({ 1: { every: 20 } }, { limits: { heartbeat: 60_000 } });
  const seen = watch((await world.client()).subscribe(1));
  await flows(seen);
  provider.signal('SIGSTOP');
  await until(() => seen.state === 'stale', 'it is stale');
  provider.signal('SIGCONT');
  await until(() => seen.state === 'live', 'it is live');
  await flows(seen);
  assert.deepEqual(seen.statuses, ['live: ', 'stale: provider silent', 'live: provider answers']);
  assert.deepEqual([seen.accepted, seen.disorder, seen.holes, seen.missed], [1, 0, 0, 0]);
  const { active, started, stopped } = await provider.report();
  assert.deepEqual([active, started, stopped], [['1:null'], { '1:null': 1 }, {}]);
});

test('a provider that hangs until its session is lost begins a new one', async () => {
  await using world = await World.start({ session: { heartbeat: '200ms' }, services: [{ code: 1, ...silence }] });
  const provider = await world.provider({ 1: { every: 20 } }, { limits: { heartbeat: 200 } });
  const seen = watch((await world.client()).subscribe(1));
  await flows(seen);
  provider.signal('SIGSTOP');
  await world.logged('provider down');
  provider.signal('SIGCONT');
  await until(() => seen.state === 'live', 'it is live');
  await flows(seen);
  assert.deepEqual([seen.statuses.at(-1), seen.accepted, seen.disorder], ['live: new generation', 1, 0]);
  const { active, started, stopped } = await provider.report();
  assert.deepEqual([active, started, stopped], [['1:null'], { '1:null': 2 }, { '1:null': 1 }]);
  const [stream] = await world.streams();
  assert.equal(stream!.upstreams.length, 1);
});

test('another provider takes over from one that hangs (failover)', async () => {
  await using world = await World.start({ session: { heartbeat: '1m' }, services: [{ code: 1, ...silence }] });
  const limits = { heartbeat: 60_000 };
  const first = await world.provider({ 1: { every: 20 } }, { limits, name: 'first' });
  const seen = watch((await world.client()).subscribe(1));
  await flows(seen);
  const second = await world.provider({ 1: { every: 20 } }, { limits, name: 'second' });
  first.signal('SIGSTOP');
  await until(async () => (await second.counts()).active === 1, 'the other one is asked');
  await until(() => seen.state === 'live', 'it is live');
  await flows(seen);
  assert.deepEqual(seen.statuses, ['live: ', 'stale: provider silent', 'live: new generation']);
  const before = seen.count;
  first.signal('SIGCONT');
  await until(async () => (await first.counts()).active === 0, 'the first one is told to stop');
  await until(() => seen.count > before + 10, 'it goes on');
  assert.deepEqual([seen.accepted, seen.disorder], [1, 0]);
  const [stream] = await world.streams();
  assert.deepEqual(stream!.upstreams, [{ provider: 'second', state: 'live' }]);
  assert.deepEqual((await second.report()).started, { '1:null': 1 });
});
