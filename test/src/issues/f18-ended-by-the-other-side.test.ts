import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configure, noHandlers } from '../support/dispatcher-world.js';
import { Parts, record } from './support.js';

async function running() {
  const parts = await Parts.start([{ code: 100 }, { code: 200 }]);
  const provider = parts.provider();
  const current = new Map<number, { end(options?: object): boolean; respond(body: string): boolean }>();
  provider.provide({ from: 1, to: 1000 }, (subscription) => {
    current.set(subscription.code, subscription);
    subscription.respond('first');
  });
  const client = parts.client();
  const given: unknown[] = [];
  const subscription = client.subscribe(100, {}, (message) => void given.push(message));
  const said = record(subscription);
  const beside = record(client.subscribe(200));
  await parts.settle();
  return { parts, provider, current, client, subscription, given, said, beside };
}

test('F18: a code that leaves the table ends the subscription, once, with a reason; it does not come back by itself', async () => {
  const { parts, client, subscription, given, said, beside } = await running();
  const { dispatcher } = parts.made;
  dispatcher.reload(configure([{ code: 200 }]), noHandlers);
  await parts.advance(1000);
  dispatcher.reload(configure([{ code: 100 }, { code: 200 }]), noHandlers);
  await parts.advance(60_000);
  assert.deepEqual(said, ['live', 'first', 'end SERVICE_REMOVED']);
  assert.equal(subscription.state, 'ended');
  assert.ok(given.every((message) => typeof (message as { text?: unknown }).text === 'function'));
  assert.deepEqual(beside, ['live', 'first'], 'the other code saw nothing');
  // the application subscribes again when it wants to
  const again = record(client.subscribe(100));
  await parts.settle();
  assert.deepEqual(again, ['live', 'first']);
  await subscription.unsubscribe();
});

test('F18: a provider that ends the stream later is one end event with its reason', async () => {
  const { parts, current, said, beside } = await running();
  current.get(100)!.end({ code: 'FORBIDDEN', message: 'licence is over' });
  await parts.advance(60_000);
  assert.deepEqual(
    [said, beside],
    [
      ['live', 'first', 'end FORBIDDEN'],
      ['live', 'first'],
    ],
  );
});

test('F18: a provider that withdraws the code is not the end: stale, and live again when it is back', async () => {
  const { parts, provider, said } = await running();
  await provider.close();
  await parts.advance(60_000);
  assert.deepEqual(said, ['live', 'first', 'stale']);
  parts.provider().provide(100, (fresh) => void fresh.respond('again'));
  await parts.settle();
  assert.deepEqual(said, ['live', 'first', 'stale', 'live', 'again']);
});
