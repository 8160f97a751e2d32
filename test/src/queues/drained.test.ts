import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OFFSET, payload, readU53, Type } from '@trunkline/proto';
import { MAX_UNCONFIRMED, PublishManyError, type Subscription } from '@trunkline/publisher/core';
import { type Bench, bench } from '../publisher/scripted-dispatcher.js';
import { QUEUE, queueParts, settled } from './bench.js';

const bodies = (count: number) => Array.from({ length: count }, () => ({ body: 'x' }));

test('publishMany never fails by its own length; publishes that find no room wait for drained', async () => {
  const parts = await queueParts();
  const provider = parts.provider();
  const many = MAX_UNCONFIRMED + 5000;
  const batch = provider.publishMany(QUEUE, bodies(many));
  assert.equal(provider.unconfirmed, MAX_UNCONFIRMED);
  await assert.rejects(provider.publish(QUEUE, 'no room'), { code: 'LIMIT_EXCEEDED', retryable: true });
  const order: string[] = [];
  const drained = provider.drained().then(() => order.push('drained'));
  batch.then(() => order.push('stored'));
  for (let round = 0; round < 100 && order.length < 2; round++) await parts.advance(3);
  await drained;
  const sequences = await batch;
  assert.deepEqual([sequences.length, sequences[0], sequences.at(-1)], [many, 1, many]);
  assert.deepEqual(order, ['drained', 'stored']);
  await provider.drained();
  assert.equal(await settled(parts, provider.publish(QUEUE, 'last')), many + 1);
});

test('messages of a publishMany that wait for room go in order, time out, can be aborted and end with the provider', async () => {
  const parts = await queueParts();
  const provider = parts.provider();
  await parts.settle();
  parts.made.disk.behaviour.flush = [60_000, 60_000];
  const first = provider.publishMany(QUEUE, bodies(MAX_UNCONFIRMED - 1)).catch((error) => error);
  const late = provider.publishMany(QUEUE, bodies(3), { timeoutMs: 100 }).catch((error) => error);
  const abort = new AbortController();
  const aborted = provider.publishMany(QUEUE, bodies(2), { signal: abort.signal }).catch((error) => error);
  const closed = provider.publishMany(QUEUE, bodies(2)).catch((error) => error);
  const waiting = provider.drained().catch((error) => error);
  assert.equal(provider.unconfirmed, MAX_UNCONFIRMED);
  await parts.advance(200);
  abort.abort();
  await parts.settle();
  await provider.close();
  for (const [error, code] of [
    [await first, 'DISCONNECTED'],
    [await late, 'TIMEOUT'],
    [await aborted, 'ABORTED'],
    [await closed, 'DISCONNECTED'],
  ]) {
    assert.ok(error instanceof PublishManyError);
    assert.equal(error.code, code);
    assert.deepEqual([...new Set(error.sequences)], [undefined]);
  }
  assert.equal((await waiting).code, 'CLOSED');
  assert.equal(provider.unconfirmed, 0);
});

/** Confirms every PUBLISH that has come. */
function confirm({ dispatcher }: Bench): void {
  for (const { code, line, batch, at } of dispatcher.of('PUBLISH')) {
    const number = readU53(batch, at + OFFSET.sequence);
    const stored = [number, 1, number];
    dispatcher.send({ type: Type.PUBLISHED, code, line }, payload.published.encode({ stored, refused: [] }));
  }
  dispatcher.seen.length = 0;
  dispatcher.consume();
}

test('a queue that always has more to send does not starve another one, nor responses', async () => {
  const it = await bench({ receiveWindow: 4096 });
  const { world, dispatcher, provider } = it;
  dispatcher.consuming = false;
  let subscription: Subscription | undefined;
  provider.provide(1, (given) => {
    subscription = given;
  });
  dispatcher.request(1, 1);
  await world.settle();
  const body = new Uint8Array(500);
  const more = () => {
    while (provider.unconfirmed < 100) provider.publish(7, body).catch(() => {});
  };
  more();
  let confirmed = false;
  provider.publish(8, body).then(() => {
    confirmed = true;
  });
  let responses = 0;
  const respond = async () => {
    for (;;) {
      await subscription!.drained();
      if (subscription!.respond(body)) responses++;
    }
  };
  respond().catch(() => {});
  for (let round = 0; round < 20; round++) {
    await world.settle();
    confirm(it);
    more();
  }
  assert.ok(confirmed, 'the other queue got its turn');
  assert.ok(responses >= 15, `${responses} responses`);
  await provider.close();
});
