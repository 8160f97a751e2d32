import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Subscription as Request } from '@trunkline/publisher/core';
import type { QueueMessage } from '@trunkline/subscriber/core';
import { QUEUE, queueParts, stored, texts } from './bench.js';

test('a recorded stream lives without subscribers, and a group that was away misses nothing', async () => {
  const params = { symbol: 'ACME' };
  const parts = await queueParts({}, [{ code: 1, record: { queue: QUEUE, params: [params] } }]);
  const provider = parts.provider();
  const running: Request[] = [];
  provider.provide(1, (request) => {
    running.push(request);
  });
  await stored(parts);
  assert.deepEqual(
    running.map((request) => request.params),
    [params],
  );
  const got: QueueMessage[] = [];
  const first = parts.client();
  first.consume(QUEUE, { group: 'g' }, (message) => void got.push(message));
  await stored(parts);
  running[0]!.respond('one', { key: 'k', attrs: { n: 1 } });
  await stored(parts);
  await first.close();
  running[0]!.respond('two');
  await stored(parts);
  parts.client().consume(QUEUE, { group: 'g' }, (message) => void got.push(message));
  await stored(parts);
  assert.deepEqual(texts(got), ['one', 'two']);
  assert.equal(got[0]!.key, 'k');
  assert.deepEqual({ ...got[0]!.attrs }, { n: 1, originCode: 1, originParams: '{"symbol":"ACME"}' });

  // its end is not the last of it
  running[0]!.end();
  await parts.advance(1500);
  assert.equal(running.length, 2);
  const live: string[] = [];
  const subscription = parts.client().subscribe(1, { params }, (message) => void live.push(message.text()));
  await stored(parts);
  running[1]!.respond('three');
  await stored(parts);
  await subscription.unsubscribe();
  await stored(parts);
  running[1]!.respond('four');
  await stored(parts);
  assert.deepEqual(live, ['three']);
  assert.deepEqual(texts(got), ['one', 'two', 'three', 'four']);
  assert.equal(running.length, 2);
});

test('a queue that takes nothing does not disturb live subscribers', async () => {
  const parts = await queueParts({ maxMessages: 1 }, [{ code: 1, record: QUEUE }]);
  const provider = parts.provider();
  provider.provide(1, (request) => {
    for (const text of ['a', 'b', 'c']) request.respond(text);
  });
  const live: string[] = [];
  parts.client().subscribe(1, {}, (message) => void live.push(message.text()));
  await stored(parts);
  assert.deepEqual(live, ['a', 'b', 'c']);
  assert.equal(parts.made.dispatcher.queues.find(QUEUE)!.depth, 1);
  assert.equal(parts.made.dispatcher.core.counters.unrecorded, 2);
});

test('a provider that is faster than the store waits for it: nothing is left out, and memory is bounded', async () => {
  const parts = await queueParts({}, [{ code: 1, record: { queue: QUEUE, params: [1] } }]);
  const provider = parts.provider();
  let taken = 0;
  let request: Request | undefined;
  provider.provide(1, (given) => {
    request = given;
  });
  await stored(parts);
  const body = new Uint8Array(64 * 1024);
  const respond = () => {
    while (taken < 1000 && request!.respond(body)) taken++;
  };
  parts.made.disk.behaviour.flush = [10_000, 10_000];
  for (let round = 0; round < 20; round++) {
    respond();
    await parts.advance(10);
  }
  const least = 4 * 1024 * 1024;
  assert.ok(taken * body.length >= least && taken * body.length < 3 * least, `${taken} were taken`);
  parts.made.disk.behaviour.flush = [0, 2];
  await parts.advance(20_000);
  for (let round = 0; round < 200 && taken < 1000; round++) {
    respond();
    await parts.advance(10);
  }
  await stored(parts);
  assert.equal(taken, 1000);
  assert.equal(parts.made.dispatcher.queues.find(QUEUE)!.depth, 1000);
});
