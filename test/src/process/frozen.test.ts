// A dispatcher or a subscriber that stands still for longer than its peers wait, and then goes on as if nothing were.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../support/wait.js';
import type { SubscriberReport } from './fixtures/subscriber-process.js';
import { watch } from './fixtures/watch.js';
import { flows, World } from './fixtures/world.js';

const limits = { heartbeat: 200 };

test('a dispatcher that stood still has everything once when it goes on', async () => {
  await using world = await World.start({ session: { heartbeat: '200ms' }, services: [{ code: '1-2' }] });
  const provider = await world.provider({ 1: { every: 5 }, 2: { every: 5 } }, { limits });
  const client = await world.client({ limits });
  const seen = [watch(client.subscribe(1)), watch(client.subscribe(2)), watch(client.subscribe(1))];
  await Promise.all(seen.map((each) => flows(each)));
  for (let round = 1; round <= 3; round++) {
    world.dispatcher.signal('SIGSTOP');
    await until(() => client.state === 'disconnected', 'the client knows');
    await until(async () => (await provider.report()).state === 'disconnected', 'the provider knows');
    world.dispatcher.signal('SIGCONT');
    await until(() => seen.every(({ state }) => state === 'live'), 'all are live');
    await Promise.all(seen.map((each) => flows(each)));
    await until(async () => (await world.sessions()).length === 2, 'one session each');
    assert.deepEqual((await provider.report()).active, ['1:null', '2:null']);
    const streams = await world.streams();
    assert.deepEqual(
      streams.map(({ subscribers, upstreams }) => [subscribers, upstreams.length]),
      [
        [1, 1],
        [1, 1],
      ],
    );
  }
  for (const { disorder, ends, errors } of seen) assert.deepEqual([disorder, ends, errors], [0, [], []]);
});

test('a subscriber that stood still until it was given up goes on after what it had, from the ring', async () => {
  await using world = await World.start({
    session: { heartbeat: '200ms' },
    services: [{ code: 1, keep: { ring: 100_000 } }],
  });
  const provider = await world.provider({ 1: { every: 2 } }, { limits });
  // keeps the stream, and with it the ring, while the other one is away
  const other = watch((await world.client({ limits })).subscribe(1));
  const subscriber = world.child('./subscriber-process.js');
  await subscriber.call('open', world.address, { name: 'frozen', limits });
  await subscriber.call('subscribe', 's', 1);
  const report = async () => (await subscriber.call<SubscriberReport>('report')).seen.s!;
  await until(async () => (await report()).count > 0, 'it receives');
  for (let round = 1; round <= 3; round++) {
    subscriber.signal('SIGSTOP');
    await until(async () => (await world.sessions()).length === 2, 'its session is given up');
    await flows(other);
    subscriber.signal('SIGCONT');
    await until(async () => (await report()).accepted >= round + 1, 'it is back');
    const { count } = await report();
    await until(async () => (await report()).count > count, 'it receives again');
  }
  const { holes, disorder, gaps, count, first, sequence } = await report();
  assert.deepEqual([holes, disorder, gaps, count], [0, 0, 0, sequence - first + 1]);
  assert.deepEqual((await provider.report()).started, { '1:null': 1 });
});
