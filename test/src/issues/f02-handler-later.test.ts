import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BACK, Parts } from './support.js';

for (const providers of ['dynamic', [BACK]] as const) {
  test(`F2: a request while the provider's handler is not there yet is answered once, by one start (${providers})`, async () => {
    const parts = await Parts.start([{ code: 100, providers, resendAfter: '300ms' }]);
    const provider = providers === 'dynamic' ? parts.provider() : await parts.bind(BACK);
    const subscription = parts.client().subscribe(100);
    let accepted = 0;
    subscription.on('accepted', () => accepted++);
    await parts.advance(1000);
    let started = 0;
    provider.provide(100, () => {
      started++;
      return () => started--;
    });
    await parts.advance(5000);
    assert.deepEqual([started, accepted, subscription.state], [1, 1, 'live']);
    assert.equal(parts.wire.filter(({ type }) => type === 'CANCEL').length, 0);
  });
}

test('F2: a provider too slow to answer before the resend starts one subscription and acknowledges once', async () => {
  const parts = await Parts.start([{ code: 100, resendAfter: '300ms' }]);
  let started = 0;
  parts.provider().provide(100, async () => {
    started++;
    await parts.sleep(1000);
    return () => {};
  });
  const subscription = parts.client().subscribe(100);
  let accepted = 0;
  subscription.on('accepted', () => accepted++);
  await parts.advance(10_000);
  assert.deepEqual([started, accepted], [1, 1]);
  assert.ok(parts.made.dispatcher.core.counters.resends >= 1);
});
