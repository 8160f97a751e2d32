import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BACK, Parts } from './support.js';

test('F4: two codes behind one address that is not up yet: the provider gets both', async () => {
  const parts = await Parts.start([
    { code: 100, providers: [BACK] },
    { code: 101, providers: [BACK] },
  ]);
  const client = parts.client();
  const subscriptions = [client.subscribe(100), client.subscribe(101), client.subscribe(101, { params: 'more' })];
  await parts.advance(20_000);
  const provider = await parts.bind(BACK);
  const asked: unknown[] = [];
  for (const code of [100, 101]) provider.provide(code, ({ params }) => void asked.push([code, params]));
  await parts.advance(1000);
  assert.deepEqual(asked, [
    [100, undefined],
    [101, undefined],
    [101, 'more'],
  ]);
  assert.deepEqual(
    subscriptions.map(({ state }) => state),
    ['live', 'live', 'live'],
  );
});
