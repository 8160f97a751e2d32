import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nothing } from '../support/dispatcher-world.js';
import { Parts } from './support.js';

test('F8: subscribe, unsubscribe, subscribe within 10 ms of a slow answer', async () => {
  const parts = await Parts.start([{ code: 100 }]);
  let started = 0;
  let stopped = 0;
  const running = new Map<number, (body: string) => void>();
  parts.provider().provide(100, (subscription) => {
    const id = ++started;
    running.set(id, (body) => subscription.respond(body));
    return () => {
      stopped++;
      running.delete(id);
    };
  });
  const client = parts.client();
  await parts.settle();
  parts.made.world.latency = 150;
  const got: string[] = [];
  const first = client.subscribe(100, {}, () => void got.push('ghost'));
  await parts.advance(5);
  await first.unsubscribe();
  await parts.advance(3);
  const third = client.subscribe(100, {}, (message) => void got.push(message.text()));
  await parts.advance(2000);
  assert.deepEqual([running.size, third.state], [1, 'live']);
  for (const respond of running.values()) respond('item');
  await parts.advance(1000);
  assert.deepEqual(got, ['item']);
  stopped = 0;
  for (const respond of running.values()) respond('under way');
  await parts.advance(299);
  await third.unsubscribe();
  await parts.advance(5000);
  assert.deepEqual(got, ['item'], 'nothing after the unsubscribe');
  assert.deepEqual([stopped, running.size], [1, 0]);
  assert.deepEqual(parts.made.leftovers(), nothing);
  assert.deepEqual(client.counts, { subscriptions: 0, lines: 0, calls: 0, sends: 0 });
});

test('F8: any quick series of subscribing and unsubscribing ends where its last word says', async () => {
  const parts = await Parts.start([{ code: 100, linger: '50ms' }]);
  const running = new Set<object>();
  parts.provider().provide(100, (subscription) => {
    running.add(subscription);
    return () => running.delete(subscription);
  });
  const client = parts.client();
  const other = parts.client();
  await parts.settle();
  parts.made.world.latency = 20;
  for (let length = 1; length <= 8; length++) {
    const handles = [];
    for (let step = 0; step < length; step++) {
      if (step % 2 === 0) handles.push((step % 4 === 0 ? client : other).subscribe(100));
      else await handles.at(-1)!.unsubscribe();
      await parts.advance([0, 3, 17, 41][step % 4]!);
    }
    await parts.advance(1000);
    assert.equal(running.size, length % 2, `length ${length}`);
    if (length % 2 === 1) await handles.at(-1)!.unsubscribe();
    await parts.advance(1000);
    assert.equal(running.size, 0);
    assert.deepEqual(parts.made.leftovers(), nothing);
  }
});
