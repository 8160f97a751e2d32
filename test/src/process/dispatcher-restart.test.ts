// The dispatcher is killed and comes back at the same address: everything goes on by itself (rule 11).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../support/wait.js';
import { type Seen, watch } from './fixtures/watch.js';
import { flows, World } from './fixtures/world.js';

const ROUNDS = 5;
const AGAIN = 3;

test('subscriptions come back, none twice, and meanwhile nobody believes to be subscribed (F5)', async () => {
  await using world = await World.start({ services: [{ code: '1-3' }] });
  const provider = await world.provider({ 1: { every: 10 }, 2: { every: 10 }, 3: { every: 10 } });
  const client = await world.client();
  const subscriptions = [1, 2, 3].map((code) => client.subscribe(code));
  const seen = subscriptions.map((subscription) => watch(subscription));
  const states: string[] = [];
  client.on('state', (state) => void states.push(state));
  await Promise.all(seen.map((each) => flows(each)));
  for (let round = 1; round <= ROUNDS; round++) {
    await world.dispatcher.kill();
    await until(() => client.state === 'disconnected', 'the client knows');
    assert.deepEqual(
      subscriptions.map(({ state }) => state),
      ['disconnected', 'disconnected', 'disconnected'],
    );
    await world.startDispatcher();
    await Promise.all(seen.map((each) => flows(each)));
    assert.deepEqual(
      subscriptions.map(({ state }) => state),
      ['live', 'live', 'live'],
    );
    const { active, started } = await provider.report();
    assert.deepEqual(active, ['1:null', '2:null', '3:null']);
    assert.deepEqual(Object.values(started), [round + 1, round + 1, round + 1]);
    assert.equal((await world.streams()).length, 3);
  }
  assert.deepEqual(states, Array.from({ length: ROUNDS }, () => ['disconnected', 'connected']).flat());
  for (const { accepted, disorder, ends, errors } of seen) {
    assert.deepEqual([accepted, disorder, ends, errors], [ROUNDS + 1, 0, [], []]);
  }
});

test('an application that subscribes in each connected event gets every message once for each handle (F6)', async () => {
  await using world = await World.start({ services: [{ code: 1 }] });
  const provider = await world.provider({ 1: { every: 10 } });
  const client = await world.client();
  const handles: { unsubscribe(): Promise<void>; seen: Seen }[] = [];
  const subscribe = () => {
    const subscription = client.subscribe(1);
    handles.push({ seen: watch(subscription), unsubscribe: () => subscription.unsubscribe() });
  };
  subscribe();
  await flows(handles[0]!.seen);
  client.on('state', (state) => {
    if (state === 'connected') subscribe();
  });
  for (let round = 1; round <= AGAIN; round++) {
    await world.restartDispatcher();
    await until(() => handles.length === round + 1, 'the client is back');
    await Promise.all(handles.map(({ seen }) => flows(seen)));
  }
  assert.deepEqual(
    handles.map(({ seen }) => seen.disorder),
    Array.from({ length: AGAIN + 1 }, () => 0),
  );
  const [stream, ...others] = await world.streams();
  // one session has one place in a lane, however many handles share it
  assert.deepEqual([others.length, stream!.subscribers], [0, 1]);
  for (const { unsubscribe } of handles.slice(1)) await unsubscribe();
  await flows(handles[0]!.seen, 'the last handle goes on');
  await handles[0]!.unsubscribe();
  await world.empty();
  await until(async () => (await provider.report()).active.length === 0, 'the provider is told to stop');
  const { started, stopped } = await provider.report();
  assert.deepEqual([started, stopped], [{ '1:null': AGAIN + 1 }, { '1:null': AGAIN + 1 }]);
});

test('a request that was refused is not asked again after a restart (F15)', async () => {
  await using world = await World.start({ services: [{ code: 1 }] });
  await world.provider({ 1: { every: 10 } });
  const client = await world.client();
  const refused = client.subscribe(99);
  const unknown = watch(refused);
  const seen = watch(client.subscribe(1));
  await until(() => unknown.ends.length === 1, 'it is refused');
  await world.restartDispatcher();
  await flows(seen);
  assert.deepEqual([unknown.errors, unknown.ends], [['UNKNOWN_SERVICE'], ['UNKNOWN_SERVICE']]);
  const { counters } = await world.status();
  assert.deepEqual([counters.requests, counters.refusals], [1, 0]);
  await refused.unsubscribe();
});
