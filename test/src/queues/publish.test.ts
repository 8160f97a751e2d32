import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PublishManyError } from '@trunkline/publisher/core';
import type { QueueMessage } from '@trunkline/subscriber/core';
import { QUEUE, queueParts, settled, stored, texts } from './bench.js';

test('publish resolves with the sequence, consumers get what was published', async () => {
  const parts = await queueParts();
  const provider = parts.provider();
  const client = parts.client();
  const got: QueueMessage[] = [];
  client.consume(QUEUE, { group: 'g' }, (message) => void got.push(message));
  await parts.settle();
  const one = provider.publish(QUEUE, { price: 1.5 }, { tag: 't', key: 'k', attrs: { n: 7 } });
  const two = provider.publish(QUEUE, 'text');
  assert.equal(provider.unconfirmed, 2);
  assert.deepEqual(await settled(parts, Promise.all([one, two])), [1, 2]);
  assert.equal(provider.unconfirmed, 0);
  await stored(parts);
  const [first, second] = got;
  assert.deepEqual(first!.json(), { price: 1.5 });
  assert.deepEqual([first!.tag, first!.key, { ...first!.attrs }], ['t', 'k', { n: 7 }]);
  assert.deepEqual([first!.sequence, first!.deliveries, first!.redelivered], [1, 1, false]);
  assert.equal(second!.text(), 'text');
  assert.equal(parts.made.dispatcher.queues.find(QUEUE)!.depth, 0);
});

test('publishMany tells all sequences; what is refused is told one by one', async () => {
  const parts = await queueParts({ maxMessages: 3 });
  const provider = parts.provider();
  assert.deepEqual(await settled(parts, provider.publishMany(QUEUE, [{ body: 'a' }, { body: 'b' }])), [1, 2]);
  assert.deepEqual(await settled(parts, provider.publishMany(QUEUE, [])), []);
  const refused = settled(parts, provider.publishMany(QUEUE, [{ body: 'c' }, { body: 'd' }]));
  await assert.rejects(refused, (error: unknown) => {
    assert.ok(error instanceof PublishManyError);
    assert.equal(error.code, 'QUEUE_FULL');
    assert.deepEqual(error.sequences, [3, undefined]);
    return true;
  });
});

test('refusals have codes: unknown queue, too large, full store', async () => {
  const parts = await queueParts({ maxMessage: 100 });
  const provider = parts.provider();
  await parts.settle();
  await assert.rejects(settled(parts, provider.publish(99, 'x')), { code: 'UNKNOWN_SERVICE' });
  await assert.rejects(settled(parts, provider.publish(QUEUE, 'x'.repeat(100))), { code: 'MESSAGE_TOO_LARGE' });
  await assert.rejects(provider.publish(0, 'x'), { code: 'OPTION_INVALID' });
  await assert.rejects(provider.publish(QUEUE, 'x', { timeoutMs: 0 }), { code: 'OPTION_INVALID' });
  await assert.rejects(provider.publish(QUEUE, 'x', { ttlMs: -1 }), { code: 'META_INVALID' });
  parts.made.disk.behaviour.capacity = 0;
  await assert.rejects(settled(parts, provider.publish(QUEUE, 'x')), { code: 'STORE_FULL', retryable: true });
  parts.made.disk.behaviour.capacity = Number.POSITIVE_INFINITY;
  await parts.advance(1000);
  assert.equal(await settled(parts, provider.publish(QUEUE, 'x')), 1);
  assert.equal(provider.unconfirmed, 0);
});

test('what was published before the connection is sent with it; sessions and dispatchers may come and go', async () => {
  const parts = await queueParts();
  const provider = parts.provider();
  const early = provider.publish(QUEUE, 'early');
  assert.equal(await settled(parts, early), 1);
  // the answers are lost with the session, and the queue has the messages already
  parts.made.disk.behaviour.flush = [50, 50];
  const pending = Promise.all(['a', 'b', 'c'].map((body) => provider.publish(QUEUE, body)));
  await parts.advance(1);
  parts.made.network.cut(parts.made.configuration.listen[0]!.address);
  await parts.settle();
  await parts.advance(60);
  parts.made.network.restore(parts.made.configuration.listen[0]!.address);
  await parts.advance(5000);
  assert.deepEqual(await pending, [2, 3, 4]);
  assert.equal(parts.made.dispatcher.queues.find(QUEUE)!.last, 4);
});

test('a publish repeated over a restart of the dispatcher is stored once', async () => {
  const parts = await queueParts();
  const provider = parts.provider();
  await parts.settle();
  for (let round = 0; round < 10; round++) {
    const pending = Promise.all(['a', 'b'].map((body) => provider.publish(QUEUE, `${body}${round}`)));
    await parts.advance(round % 3);
    await parts.made.restart();
    await parts.advance(5000);
    await settled(parts, pending);
  }
  const got: QueueMessage[] = [];
  parts.client().consume(QUEUE, { group: 'g' }, (message) => void got.push(message));
  await stored(parts);
  assert.deepEqual(
    texts(got).sort(),
    Array.from({ length: 10 }, (_, n) => [`a${n}`, `b${n}`])
      .flat()
      .sort(),
  );
});

test('timeout, abort and close tell what is known', async () => {
  const parts = await queueParts();
  const provider = parts.provider();
  await parts.settle();
  parts.made.disk.behaviour.flush = [10_000, 10_000];
  const late = assert.rejects(provider.publish(QUEUE, 'x', { timeoutMs: 500 }), {
    code: 'TIMEOUT',
    message: /may have/,
  });
  const abort = new AbortController();
  const aborted = assert.rejects(provider.publish(QUEUE, 'y', { signal: abort.signal }), { code: 'ABORTED' });
  await parts.advance(600);
  abort.abort();
  await late;
  await aborted;
  const closed = assert.rejects(provider.publish(QUEUE, 'z'), { code: 'DISCONNECTED', message: /may have/ });
  await parts.settle();
  await provider.close();
  await closed;
  await assert.rejects(provider.publish(QUEUE, 'z'), { code: 'CLOSED' });
  assert.equal(provider.unconfirmed, 0);
});

test('a publisher without confirmations is bounded', async () => {
  const parts = await queueParts();
  const provider = parts.provider();
  const body = new Uint8Array(1024 * 1024);
  const results = Array.from({ length: 80 }, () => provider.publish(QUEUE, body).then(String, (error) => error.code));
  await parts.advance(1000);
  const codes = await Promise.all(results);
  assert.ok(codes.includes('LIMIT_EXCEEDED'));
  assert.equal(
    codes.filter((code) => code !== 'LIMIT_EXCEEDED').length,
    parts.made.dispatcher.queues.find(QUEUE)!.last,
  );
});
