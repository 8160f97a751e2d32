// F89, F90, F92: SIGHUP applies the file whole or not at all, and disturbs only what changed.
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { until } from '../support/wait.js';
import { type Seen, watch } from './fixtures/watch.js';
import { flows, freePort, type ProviderProcess, World } from './fixtures/world.js';

const ten = Array.from({ length: 10 }, (_, index) => ({ code: index + 1, name: `service ${index + 1}` }));

async function running() {
  const world = await World.start({ services: ten });
  const provider = await world.provider({ 1: { every: 5 }, 2: { every: 5 } });
  const client = await world.client();
  const states: string[] = [];
  client.on('state', (state) => void states.push(state));
  const seen = [watch(client.subscribe(1)), watch(client.subscribe(2))];
  await Promise.all(seen.map((each) => flows(each)));
  return { world, provider, client, seen, states };
}

async function undisturbed(provider: ProviderProcess, seen: readonly Seen[], states: readonly string[]) {
  await Promise.all(seen.map((each) => flows(each)));
  for (const { statuses, holes, disorder, gaps, accepted, ends } of seen) {
    assert.deepEqual([statuses, holes, disorder, gaps, accepted, ends], [['live: '], 0, 0, 0, 1, []]);
  }
  assert.deepEqual(states, []);
  const { started, stopped } = await provider.report();
  assert.deepEqual([started, stopped], [{ '1:null': 1, '2:null': 1 }, {}]);
}

test('a file that did not change, or only in its layout, is no change (F90, F92)', async () => {
  const { world, provider, seen, states } = await running();
  await using _world = world;
  world.dispatcher.signal('SIGHUP');
  await world.logged('reload: no change', 1);
  const { services, ...rest } = world.configuration;
  const reordered = services.map((service) => Object.fromEntries(Object.entries(service).reverse()));
  writeFileSync(
    world.file,
    `\uFEFF${JSON.stringify({ services: reordered, ...rest }, undefined, 4).replaceAll('\n', '\r\n')}`,
  );
  world.dispatcher.signal('SIGHUP');
  await world.logged('reload: no change', 2);
  await undisturbed(provider, seen, states);
});

const bad: Record<string, { break(file: string, world: World): void; says: RegExp }> = {
  'a missing file': { break: (file) => rmSync(file), says: /no such file/ },
  'bad JSON': { break: (file) => writeFileSync(file, '{ "listen": [,'), says: /JSON|expected|value/i },
  'a wrong entry 7 of 10': {
    break: (_file, world) => {
      const services = ten.map((service, index) => (index === 6 ? { ...service, resendAfter: 'soon' } : service));
      world.write({ ...world.configuration, services });
    },
    says: /services\[6\]\.resendAfter/,
  },
  'the same code twice': {
    break: (_file, world) => world.write({ ...world.configuration, services: [...ten, { code: 3 }] }),
    says: /services\[10\]/,
  },
};

test('a reload that fails leaves the old table whole and says why; a start with the same file says the same (F89)', async () => {
  const { world, provider, seen, states } = await running();
  await using _world = world;
  const good = world.configuration;
  let refusals = 0;
  for (const [what, { break: spoil, says }] of Object.entries(bad)) {
    spoil(world.file, world);
    world.dispatcher.signal('SIGHUP');
    await world.logged('reload: refused, the old table stays', ++refusals);
    const said = JSON.stringify(world.logs('reload: refused, the old table stays').at(-1));
    assert.match(said, says, what);
    const second = world.spawnDispatcher();
    assert.equal((await second.ended()).code, 1, what);
    assert.match(second.stderr, says, what);
    world.write(good);
  }
  await undisturbed(provider, seen, states);
  world.dispatcher.signal('SIGHUP');
  await world.logged('reload: no change');
  assert.equal((await world.streams()).length, 2);
});

test('a service that is taken out ends, one that is added works, the others see nothing (F18)', async () => {
  const { world, client, seen } = await running();
  await using _world = world;
  world.write({ ...world.configuration, services: [...ten.slice(1), { code: 77 }] });
  world.dispatcher.signal('SIGHUP');
  await world.logged('reload: applied');
  await until(() => seen[0]!.ends.length === 1, 'its subscriber is told');
  assert.deepEqual(seen[0]!.ends, ['SERVICE_REMOVED']);
  await flows(seen[1]!);
  assert.deepEqual([seen[1]!.statuses, seen[1]!.holes, seen[1]!.accepted], [['live: '], 0, 1]);
  await assert.rejects(client.request(1), { code: 'UNKNOWN_SERVICE' });
  await world.provider({ 77: { final: 'there' } });
  assert.deepEqual((await client.request(77)).json(), { final: 'there' });
});

test('a changed address moves the streams of its service and no other (F90)', async () => {
  const [one, two, other] = [await freePort(), await freePort(), await freePort()].map(
    (port) => `tcp://127.0.0.1:${port}`,
  );
  const services = (address: string) => [
    { code: 1, providers: [address] },
    { code: 2, providers: [other!] },
  ];
  await using world = await World.start({ services: services(one!) });
  const [first, second, third] = [
    await world.provider({ 1: { every: 5 } }, { bind: one! }),
    await world.provider({ 1: { every: 5 } }, { bind: two! }),
    await world.provider({ 2: { every: 5 } }, { bind: other! }),
  ];
  const client = await world.client();
  const [moved, kept] = [watch(client.subscribe(1)), watch(client.subscribe(2))];
  await Promise.all([flows(moved), flows(kept)]);
  world.write({ ...world.configuration, services: services(two!) });
  world.dispatcher.signal('SIGHUP');
  await until(async () => (await second.counts()).active === 1, 'the new one is asked');
  await until(async () => (await first.counts()).active === 0, 'the old one is told to stop');
  await Promise.all([flows(moved), flows(kept)]);
  assert.deepEqual([moved.accepted, moved.ends, moved.statuses.at(-1)], [1, [], 'live: new generation']);
  assert.deepEqual([kept.statuses, kept.holes, kept.disorder], [['live: '], 0, 0]);
  assert.deepEqual((await third.report()).started, { '2:null': 1 });
});
