// Rule 4: a storm of requests must not time out a slow provider.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../support/wait.js';
import { watch } from './fixtures/watch.js';
import { flows, World } from './fixtures/world.js';

const STORM = 20_000;
const WINDOW = 64;

test('20,000 requests at once reach a slow provider at its own pace, and live traffic goes on', async () => {
  await using world = await World.start({
    session: { heartbeat: '10s' },
    services: [{ code: 1, requestWindow: WINDOW, resendAfter: '10s' }, { code: 2 }],
  });
  // asking for 20,000 at once may keep a busy machine from everything else for seconds
  const limits = { heartbeat: 10_000 };
  const slow = await world.provider({ 1: { workMs: 0.05 } }, { limits });
  await world.provider({ 2: { every: 5 } }, { limits });
  const live = watch((await world.client({ limits })).subscribe(2));
  await flows(live);
  const client = await world.client({ limits });
  const requests = Array.from({ length: STORM }, (_, n) => client.subscribe(1, { params: { n } }));
  const before = live.count;
  let accepted = 0;
  await Promise.all(requests.map((each) => each.accepted().then(() => accepted++)));
  assert.equal(accepted, STORM);
  assert.ok(live.count > before + 10, `${live.count - before} live messages came during the storm`);
  assert.deepEqual([live.holes, live.disorder, live.statuses], [0, 0, ['live: ']]);
  const { mostUnanswered, startedCount, active } = await slow.counts();
  assert.deepEqual([startedCount, active], [STORM, STORM]);
  assert.ok(mostUnanswered <= WINDOW, `${mostUnanswered} were unanswered at one time`);
  const { counters } = await world.status();
  assert.deepEqual([counters.resends, counters.refusals], [0, 0]);
  await client.close();
  await until(async () => (await slow.counts()).active === 0, 'the provider is told of the end of all');
  await until(async () => (await world.status()).streams === 1, 'only the live one is left');
});
