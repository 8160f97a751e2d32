// Connections that break in mid-sentence, or go dead without a word, while both ends live (F34).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../support/wait.js';
import { Cable } from './fixtures/cable.js';
import { watch } from './fixtures/watch.js';
import { flows, World } from './fixtures/world.js';

const CUTS = 10;

test('a subscriber whose connection is cut again and again misses nothing that the ring holds', async () => {
  await using world = await World.start({ services: [{ code: 1, keep: { ring: 100_000 }, linger: '1m' }] });
  const provider = await world.provider({ 1: { every: 1 } });
  await using cable = await Cable.start(world.address);
  const client = await world.client({}, cable.address);
  const subscription = client.subscribe(1);
  const seen = watch(subscription);
  await flows(seen);
  for (let cut = 1; cut <= CUTS; cut++) {
    cable.cut();
    await until(() => seen.accepted === cut + 1, 'it is back');
    await flows(seen);
  }
  assert.deepEqual([seen.holes, seen.disorder, seen.gaps, seen.missed], [0, 0, 0, 0]);
  assert.equal(seen.count, seen.sequence - seen.first + 1);
  assert.equal(seen.statuses.filter((status) => status.startsWith('disconnected')).length, CUTS);
  assert.deepEqual((await provider.report()).started, { '1:null': 1 });
  assert.equal((await world.sessions()).length, 2);
});

test('a provider whose connection is cut again and again has each subscription once', async () => {
  await using world = await World.start({ services: [{ code: 1 }] });
  await using cable = await Cable.start(world.address);
  const provider = await world.provider({ 1: { every: 2 } }, { connect: cable.address });
  const client = await world.client();
  const seen = [watch(client.subscribe(1, { params: 1 })), watch(client.subscribe(1, { params: 2 }))];
  await Promise.all(seen.map((each) => flows(each)));
  for (let cut = 1; cut <= CUTS; cut++) {
    cable.cut();
    await until(() => seen.every(({ statuses }) => statuses.length === 2 * cut + 1), 'stale, and live again');
    await Promise.all(seen.map((each) => flows(each)));
  }
  const { active, started, stopped } = await provider.report();
  assert.deepEqual(active, ['1:1', '1:2']);
  assert.deepEqual(
    [started, stopped],
    [
      { '1:1': CUTS + 1, '1:2': CUTS + 1 },
      { '1:1': CUTS, '1:2': CUTS },
    ],
  );
  for (const { disorder, accepted, ends } of seen) assert.deepEqual([disorder, accepted, ends], [0, 1, []]);
});

test('a subscriber whose connection goes dead without a word is back over a new one, and the old one leaves nothing', async () => {
  await using world = await World.start({
    session: { heartbeat: '200ms' },
    services: [{ code: 1, keep: { ring: 100_000 }, linger: '1m' }],
  });
  const provider = await world.provider({ 1: { every: 2 } }, { limits: { heartbeat: 200 } });
  await using cable = await Cable.start(world.address);
  const client = await world.client({ limits: { heartbeat: 200 }, attemptMs: 300 }, cable.address);
  const seen = watch(client.subscribe(1));
  await flows(seen);
  cable.freeze();
  await until(() => client.state === 'disconnected', 'the client knows');
  assert.equal(seen.state, 'disconnected');
  await world.logged('session closed');
  cable.thaw();
  await until(() => seen.accepted === 2, 'it is back');
  await flows(seen);
  assert.deepEqual([seen.holes, seen.disorder, seen.gaps], [0, 0, 0]);
  const [stream] = await world.streams();
  assert.equal(stream!.subscribers, 1);
  await until(async () => (await world.sessions()).length === 2, 'one session each');
  assert.deepEqual((await provider.report()).started, { '1:null': 1 });
});

test('a provider whose connection goes dead without a word is stale, and live when it is back', async () => {
  await using world = await World.start({
    session: { heartbeat: '200ms' },
    services: [{ code: 1, probeAfter: '1m' }],
  });
  await using cable = await Cable.start(world.address);
  const provider = await world.provider({ 1: { every: 5 } }, { connect: cable.address, limits: { heartbeat: 200 } });
  const seen = watch((await world.client()).subscribe(1));
  await flows(seen);
  cable.freeze();
  await until(() => seen.state === 'stale', 'it is stale');
  await until(async () => (await provider.report()).state === 'disconnected', 'the provider knows');
  assert.deepEqual((await provider.report()).active, []);
  cable.thaw();
  await until(() => seen.state === 'live', 'it is live');
  await flows(seen);
  assert.deepEqual([seen.disorder, seen.accepted, seen.statuses.at(-1)], [0, 1, 'live: new generation']);
  assert.deepEqual((await provider.report()).active, ['1:null']);
});
