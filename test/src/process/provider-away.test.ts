// A provider that is away for longer than every timeout, or not there yet, or there without its handler.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../support/wait.js';
import { watch } from './fixtures/watch.js';
import { flows, freePort, World } from './fixtures/world.js';

const timing = { probeAfter: '100ms', probeMisses: 2, resendAfter: '100ms', resendCap: '200ms' };
const session = { heartbeat: '150ms' };
/** Longer than any of them, ms. */
const LONG = 1500;

async function elapsed(ms: number): Promise<void> {
  const end = performance.now() + ms;
  await until(() => performance.now() >= end, 'all timeouts have passed');
}

for (const kind of ['dynamic', 'static']) {
  test(`a ${kind} provider that is away for longer than every timeout (F1)`, async () => {
    const bind = `tcp://127.0.0.1:${await freePort()}`;
    const where = kind === 'static' ? { bind } : {};
    const providers = kind === 'static' ? [bind] : ('dynamic' as const);
    await using world = await World.start({ session, services: [{ code: 1, providers, ...timing }] });
    const client = await world.client();
    const first = await world.provider({ 1: { every: 20 } }, where);
    const seen = watch(client.subscribe(1, { params: 7 }));
    await flows(seen);
    await first.kill();
    await until(() => seen.state === 'stale', 'it is stale');
    await elapsed(LONG);
    const late = watch(client.subscribe(1, { params: 8 }));
    const second = await world.provider({ 1: { every: 20 } }, where);
    await Promise.all([flows(seen), flows(late)]);
    const { active, started, stopped } = await second.report();
    assert.deepEqual([active, started, stopped], [['1:7', '1:8'], { '1:7': 1, '1:8': 1 }, {}]);
    assert.deepEqual(seen.statuses, ['live: ', 'stale: provider lost', 'live: new generation']);
    assert.deepEqual([seen.accepted, late.accepted, late.statuses], [1, 1, ['live: ']]);
  });

  test(`a ${kind} provider that starts after its subscribers`, async () => {
    const bind = `tcp://127.0.0.1:${await freePort()}`;
    const where = kind === 'static' ? { bind } : {};
    const providers = kind === 'static' ? [bind] : ('dynamic' as const);
    await using world = await World.start({ session, services: [{ code: 1, providers, ...timing }] });
    const client = await world.client();
    const seen = [watch(client.subscribe(1)), watch(client.subscribe(1)), watch(client.subscribe(1, { params: 2 }))];
    await until(async () => (await world.status()).streams === 2, 'the requests wait');
    assert.deepEqual(
      seen.map(({ state }) => state),
      ['pending', 'pending', 'pending'],
    );
    const provider = await world.provider({ 1: { every: 20 } }, where);
    await Promise.all(seen.map((each) => flows(each)));
    const { active, started } = await provider.report();
    assert.deepEqual([active, started], [['1:2', '1:null'], { '1:2': 1, '1:null': 1 }]);
    assert.deepEqual(
      seen.map(({ accepted }) => accepted),
      [1, 1, 1],
    );
  });
}

test('two services behind one address that is not there yet both get their subscription (F4)', async () => {
  const bind = `tcp://127.0.0.1:${await freePort()}`;
  const service = { providers: [bind], ...timing };
  await using world = await World.start({
    session,
    services: [
      { code: 100, ...service },
      { code: 101, ...service },
    ],
  });
  const client = await world.client();
  const seen = [watch(client.subscribe(100)), watch(client.subscribe(101))];
  await until(async () => (await world.status()).streams === 2, 'the requests wait');
  const provider = await world.provider({ 100: { every: 20 }, 101: { every: 20 } }, { bind });
  await Promise.all(seen.map((each) => flows(each)));
  const { active, started } = await provider.report();
  assert.deepEqual([active, started], [['100:null', '101:null'], { '100:null': 1, '101:null': 1 }]);
});

test('a provider that is up before its handler ends with one subscription and no end of one (F2)', async () => {
  const bind = `tcp://127.0.0.1:${await freePort()}`;
  await using world = await World.start({
    services: [{ code: 1, providers: [bind], resendAfter: '100ms', resendCap: '100ms' }],
  });
  const client = await world.client();
  const seen = watch(client.subscribe(1));
  const provider = await world.provider({}, { bind });
  await until(async () => (await world.status()).counters.resends! >= 3, 'the request was sent again and again');
  assert.equal(seen.accepted, 0);
  await provider.call('provide', 1, { every: 20 });
  await flows(seen);
  const { resends } = (await world.status()).counters;
  const before = seen.count;
  await until(() => seen.count > before + 10, 'more than two resend periods pass');
  const { active, started, stopped } = await provider.report();
  assert.deepEqual([active, started, stopped], [['1:null'], { '1:null': 1 }, {}]);
  assert.deepEqual([seen.accepted, seen.statuses, seen.disorder], [1, ['live: '], 0]);
  assert.equal((await world.status()).counters.resends, resends);
});
