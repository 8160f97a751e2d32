// F100: a stop always comes to its end, says what it dropped, and a second signal does not wait for it.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { until } from '../support/wait.js';
import { watch } from './fixtures/watch.js';
import { flows, freePort, World } from './fixtures/world.js';

const ended = { code: 0, signal: null };

test('SIGTERM: peers are told, nothing was dropped, exit 0', async () => {
  await using world = await World.start({ services: [{ code: 1 }] });
  const provider = await world.provider({ 1: { every: 5 } });
  const client = await world.client();
  const reasons: (string | undefined)[] = [];
  client.on('state', (_state, reason) => void reasons.push(reason?.code));
  await flows(watch(client.subscribe(1)));
  world.dispatcher.signal('SIGTERM');
  assert.deepEqual(await world.dispatcher.ended(), ended);
  await until(() => client.state === 'disconnected', 'the client is told');
  assert.deepEqual(reasons, ['SHUTTING_DOWN']);
  const [report] = world.logs('dispatcher stopped');
  assert.deepEqual([report!.sessions, report!.undeliveredBytes], [0, 0]);
  const { active, started, stopped } = await provider.report();
  assert.deepEqual([active, started, stopped], [[], { '1:null': 1 }, { '1:null': 1 }]);
  // and all of it comes back with the next process
  await world.startDispatcher();
  await until(async () => (await provider.counts()).active === 1, 'the provider is asked again');
  assert.equal(client.state, 'connected');
});

/** A dispatcher with bytes for a subscriber that takes none. */
async function stuck(drain: string): Promise<World> {
  const world = await World.start({ drain, session: { heartbeat: '1m' }, services: [{ code: 1 }] });
  const provider = await world.provider({ 1: {} });
  const frozen = world.child('./subscriber-process.js');
  await frozen.call('open', world.address, { name: 'frozen', limits: { receiveWindow: 16_384, heartbeat: 60_000 } });
  await frozen.call('subscribe', 's', 1);
  await until(async () => (await provider.counts()).active === 1, 'the provider serves it');
  frozen.signal('SIGSTOP');
  await provider.call('stream', 1, 200, 1000);
  await until(async () => {
    const session = (await world.sessions()).find(({ name }) => name === 'frozen');
    return session!.outboxBytes > 0;
  }, 'bytes wait for it');
  return world;
}

test('SIGTERM with a subscriber that takes nothing: the drain time is its bound, and the log says what was dropped', async () => {
  await using world = await stuck('300ms');
  world.dispatcher.signal('SIGTERM');
  assert.deepEqual(await world.dispatcher.ended(), ended);
  const [report] = world.logs('dispatcher stopped');
  assert.equal(report!.sessions, 1);
  assert.ok(Number(report!.undeliveredBytes) > 0);
  assert.equal(report!.level, 40);
});

for (const signals of [
  ['SIGTERM', 'SIGTERM'],
  ['SIGINT', 'SIGTERM'],
] as const) {
  test(`${signals.join(' and then ')}: the second one does not wait for the drain time`, async () => {
    await using world = await stuck('10m');
    world.dispatcher.signal(signals[0]);
    await world.logged('stopping');
    world.dispatcher.signal(signals[1]);
    assert.deepEqual(await world.dispatcher.ended(), { code: 1, signal: null });
    assert.equal(world.logs('second signal: exiting at once').length, 1);
  });
}

test('SIGTERM while a static provider is away, while one comes back, and during a reload', async () => {
  const bind = `tcp://127.0.0.1:${await freePort()}`;
  const absent = `tcp://127.0.0.1:${await freePort()}`;
  await using world = await World.start({ services: [{ code: 1, providers: [absent, bind] }, { code: 2 }] });
  const client = await world.client();
  const seen = watch(client.subscribe(1));
  const services = { 1: { every: 10 } };
  // dialling in vain
  await until(async () => (await world.status()).streams === 1, 'the request waits');
  world.dispatcher.signal('SIGTERM');
  assert.deepEqual(await world.dispatcher.ended(), ended);
  // a provider comes back
  await world.startDispatcher();
  const provider = await world.provider(services, { bind });
  await flows(seen);
  await provider.kill();
  await world.logged('provider down');
  const back = world.provider(services, { bind });
  world.dispatcher.signal('SIGTERM');
  assert.deepEqual(await world.dispatcher.ended(), ended);
  await back;
  // a reload
  await world.startDispatcher();
  await flows(seen);
  world.write({ ...world.configuration, services: [{ code: 1, providers: [absent, bind], linger: '1s' }] });
  world.dispatcher.signal('SIGHUP');
  world.dispatcher.signal('SIGTERM');
  assert.deepEqual(await world.dispatcher.ended(), ended);
});

test('SIGTERM while many clients reconnect and ask for much', async () => {
  await using world = await World.start({ services: [{ code: 1 }] });
  const provider = await world.provider({ 1: {} });
  const clients = await Promise.all(Array.from({ length: 20 }, () => world.client()));
  const all = clients.flatMap((client, c) =>
    Array.from({ length: 50 }, (_, n) => client.subscribe(1, { params: [c, n] })),
  );
  await Promise.all(all.map((each) => each.accepted()));
  await world.dispatcher.kill();
  await world.startDispatcher();
  await world.logged('session open', 3);
  world.dispatcher.signal('SIGTERM');
  assert.deepEqual(await world.dispatcher.ended(), ended);
  const { startedCount } = await provider.counts();
  await until(() => clients.every(({ state }) => state === 'disconnected'), 'the clients are told');
  assert.equal((await provider.counts()).startedCount, startedCount);
  assert.equal((await provider.counts()).active, 0);
});

/** A dispatcher that is still loading a module; it goes on when the file is there. */
async function loading() {
  const world = await World.start({ services: [] }, { running: false });
  const gate = `${world.folder}/gate`;
  writeFileSync(
    `${world.folder}/slow.mjs`,
    `import { existsSync } from 'node:fs';
     process.stderr.write('module loads\\n');
     while (!existsSync(${JSON.stringify(gate)})) await new Promise((resolve) => setTimeout(resolve, 5));
     export default () => ({ onProbe() {} });`,
  );
  world.write({ ...world.configuration, modules: { onProbe: { slow: { path: './slow.mjs' } } } });
  world.dispatcher = world.spawnDispatcher();
  await until(() => world.dispatcher.stderr.includes('module loads'), 'the start is under way');
  return { world, go: () => writeFileSync(gate, '') };
}

test('a signal during the start counts when that is done', async () => {
  const { world, go } = await loading();
  await using _world = world;
  world.dispatcher.signal('SIGHUP');
  go();
  await world.logged('dispatcher started');
  await world.logged('reload: no change');
  const other = await loading();
  await using _other = other.world;
  other.world.dispatcher.signal('SIGTERM');
  other.go();
  assert.deepEqual(await other.world.dispatcher.ended(), ended);
  assert.equal(other.world.logs('dispatcher stopped').length, 1);
});
