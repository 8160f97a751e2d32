import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Parts } from './support.js';

async function source(count: number) {
  const parts = await Parts.start([{ code: 100 }]);
  parts.provider().provide(100, (subscription) => {
    for (let item = 1; item <= count; item++) subscription.respond(item);
  });
  return parts;
}

test('F24: handlers that take 50 to 0 ms finish in order in ordered mode, and side by side otherwise', async () => {
  const parts = await source(50);
  const finished: Record<string, number[]> = { ordered: [], free: [], iterated: [], listened: [] };
  const work = async (to: number[], item: number) => {
    await parts.sleep(50 - item);
    to.push(item);
  };
  const client = parts.client();
  client.subscribe(100, {}, (message) => work(finished.ordered!, message.json() as number));
  client.subscribe(100, { ordered: false }, (message) => work(finished.free!, message.json() as number));
  client.subscribe(100).on('message', (message) => work(finished.listened!, message.json() as number));
  void (async () => {
    for await (const message of client.subscribe(100)) await work(finished.iterated!, message.json() as number);
  })();
  await parts.advance(10_000);
  const ascending = Array.from({ length: 50 }, (_, index) => index + 1);
  assert.deepEqual(finished.ordered, ascending);
  assert.deepEqual(finished.listened, ascending);
  assert.deepEqual(finished.iterated, ascending);
  assert.deepEqual(finished.free, [...ascending].reverse());
});

test('F24: a handler that is stuck for 30 s costs neither the session nor other subscriptions', async () => {
  const parts = await source(5);
  const client = parts.client();
  const stuck: number[] = [];
  client.subscribe(100, { params: 'stuck' }, async (message) => {
    stuck.push(message.json() as number);
    await parts.sleep(30_000);
  });
  await parts.advance(10_000);
  const other: number[] = [];
  client.subscribe(100, { params: 'other' }, (message) => void other.push(message.json() as number));
  await parts.advance(15_000);
  assert.deepEqual([stuck, other, client.state], [[1], [1, 2, 3, 4, 5], 'connected']);
  assert.equal(parts.made.dispatcher.peers.size, 2);
  await parts.advance(200_000);
  assert.deepEqual(stuck, [1, 2, 3, 4, 5]);
});
