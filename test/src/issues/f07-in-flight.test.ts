import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FRONT, Parts } from './support.js';

test('F7: subscribing in one tick before the connection is up: each request goes out once, no error', async () => {
  const parts = await Parts.start([{ code: '100-299' }]);
  const asked: number[] = [];
  const provider = parts.provider();
  provider.provide({ from: 100, to: 299 }, (subscription) => {
    asked.push(subscription.code);
    subscription.respond(`${subscription.code}`);
  });
  await parts.settle();
  parts.wire.length = 0;
  const client = parts.client();
  const errors: unknown[] = [];
  client.on('error', (error) => errors.push(error));
  const got: string[] = [];
  const codes = Array.from({ length: 200 }, (_, index) => 100 + index);
  // the first code twice
  const subscriptions = [100, ...codes].map((code) =>
    client.subscribe(code, {}, (message) => void got.push(message.text())),
  );
  for (const subscription of subscriptions) subscription.on('error', (error) => errors.push(error));
  assert.equal(client.state, 'disconnected');
  await parts.advance(60_000);
  assert.deepEqual(asked, codes);
  assert.deepEqual(got.map(Number).sort(), [100, ...codes]);
  assert.deepEqual(errors, []);
  // from a dispatcher to its provider, and from the client: one for each handle
  assert.equal(parts.sent(`from ${FRONT}`, 'REQUEST'), 200);
  assert.equal(parts.sent(FRONT, 'REQUEST'), 201);
  assert.deepEqual(
    subscriptions.map(({ state }) => state),
    Array(201).fill('live'),
  );
});
