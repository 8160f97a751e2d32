import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configure, noHandlers } from '../support/dispatcher-world.js';
import { BACK, FRONT, Parts, record } from './support.js';

const services = [
  { code: 100, providers: [BACK], probeAfter: '10s', linger: '5s' },
  { code: 200, probeAfter: '10s', keep: 'last' },
  { code: '300-399', resendAfter: '4s' },
];

async function running() {
  const parts = await Parts.start(services);
  const [bound, dialled] = [await parts.bind(BACK), parts.provider()];
  bound.provide(100, () => {});
  dialled.provide({ from: 200, to: 299 }, (subscription) => void subscription.respond('item'));
  const clients = Array.from({ length: 100 }, () => parts.client());
  const said = clients.flatMap((client) => [100, 200].map((code) => record(client.subscribe(code))));
  // one is pending, with a resend under way
  parts.provider().provide(300, () => new Promise(() => {}));
  clients[0]!.subscribe(300);
  await parts.advance(3000);
  parts.wire.length = 0;
  return { parts, said };
}

test('F90: a reload without a change sends nothing to anybody, and timers keep their phase', async () => {
  const { parts, said } = await running();
  const { world, dispatcher } = parts.made;
  const deadline = world.timers.nextDeadline();
  const timers = world.timers.size;
  for (let round = 0; round < 3; round++) {
    const { diff, ...report } = dispatcher.reload(configure(services), noHandlers);
    assert.deepEqual([diff.unchanged, report], [true, { removed: [], ended: 0, moved: 0 }]);
  }
  await parts.settle();
  assert.deepEqual(parts.wire, []);
  assert.deepEqual([world.timers.nextDeadline(), world.timers.size], [deadline, timers]);
  // the resend of 300 at 4 to 4.8 s, the probes of 100 and 200 at 10 s
  await parts.advance(2000);
  assert.equal(parts.sent(`from ${FRONT}`, 'REQUEST', 300), 1);
  for (let second = 5; second <= 9; second++) {
    dispatcher.reload(configure(services), noHandlers);
    assert.equal(parts.wire.filter(({ type }) => type === 'PROBE').length, 0);
    if (second < 9) await parts.advance(1000);
  }
  await parts.advance(1500);
  assert.deepEqual(parts.wire.flatMap(({ type, code }) => (type === 'PROBE' ? code : [])).sort(), [100, 200]);
  assert.deepEqual(
    said,
    Array(100)
      .fill([['live'], ['live', 'item']])
      .flat(),
  );
});

test('F90: a changed address touches only its own subscriptions', async () => {
  const { parts, said } = await running();
  const other = 'tcp://127.0.0.1:7501';
  const fresh = await parts.bind(other);
  let started = 0;
  fresh.provide(100, () => void started++);
  const changed = services.map((service) => (service.code === 100 ? { ...service, providers: [other] } : service));
  const report = parts.made.dispatcher.reload(configure(changed), noHandlers);
  await parts.advance(100);
  assert.deepEqual([report.moved, report.ended, started], [1, 0, 1]);
  assert.deepEqual([...new Set(parts.wire.filter(({ code }) => code !== 0).map(({ code }) => code))], [100]);
  assert.deepEqual(
    said,
    Array(100)
      .fill([
        ['live', 'stale', 'live'],
        ['live', 'item'],
      ])
      .flat(),
  );
});

test('F90: a changed option applies as at a start, without touching what runs', async () => {
  const { parts, said } = await running();
  const changed = services.map((service) => ({ ...service, probeAfter: '1s', linger: '0s' }));
  parts.made.dispatcher.reload(configure(changed), noHandlers);
  await parts.settle();
  assert.deepEqual(parts.wire, []);
  await parts.advance(12_000);
  assert.ok(parts.wire.filter(({ type, code }) => type === 'PROBE' && code === 100).length >= 3);
  assert.deepEqual(
    said,
    Array(100)
      .fill([['live'], ['live', 'item']])
      .flat(),
  );
});
