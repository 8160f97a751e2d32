import assert from 'node:assert/strict';
import { performance } from 'node:perf_hooks';
import { type TestContext, test } from 'node:test';
import { connect as connectProvider } from '@trunkline/publisher';
import { connect } from '@trunkline/subscriber';
import { until } from '../support/wait.js';
import { quiet, Real } from './real.js';

const HOUR = 3_600_000;

/** Sets the date of the process off by so much, until the test ends. */
function dateJumps(t: TestContext, by: number): void {
  const { now } = Date;
  Date.now = () => now() + by;
  t.after(() => {
    Date.now = now;
  });
}

for (const by of [HOUR, -HOUR]) {
  test(`F56: the date jumps by ${by} ms during a resend, an ack timeout and a probe: all come after their real time`, async (t) => {
    const service = { code: 100, resendAfter: '300ms', resendCap: '300ms', probeAfter: '300ms', linger: '200ms' };
    const real = await Real.start(t, [service], { session: { heartbeat: '100ms' } });
    const provider = await connectProvider(real.address, { ...quiet, limits: { heartbeat: 100 } });
    const answers: (() => void)[] = [];
    provider.provide(
      100,
      () =>
        new Promise<() => void>((resolve) => {
          answers.push(() => resolve(() => {}));
        }),
    );
    const client = await connect(real.address, { ...quiet, limits: { heartbeat: 100 } });
    const { counters } = real.dispatcher.core;
    const began = performance.now();
    const subscription = client.subscribe(100);
    const timeout = client.request(100, { params: 1, timeoutMs: 400 }).catch(({ code }) => [code, performance.now()]);
    await until(() => real.dispatcher.registry.streamCount === 2, 'both are under way');
    dateJumps(t, by);
    await until(() => counters.resends >= 1, 'it is sent again');
    assert.ok(performance.now() - began >= 295, 'not before its time');
    const [code, at] = (await timeout) as [string, number];
    assert.equal(code, 'TIMEOUT');
    assert.ok(at - began >= 395);
    for (const answer of answers) answer();
    await until(() => subscription.state === 'live', 'it is answered');
    const probes = counters.probes;
    await until(() => counters.probes > probes, 'the silent stream is probed');
    assert.deepEqual([client.state, provider.state], ['connected', 'connected']);
    await subscription.unsubscribe();
    await until(() => provider.subscriptions === 0, 'the linger ends');
    await Promise.all([client.close(), provider.close()]);
  });
}
