import assert from 'node:assert/strict';
import { test } from 'node:test';
import { payload, TrunklineError, Type } from '@trunkline/proto';
import type { Subscription } from '@trunkline/publisher/core';
import { bench, read } from './scripted-dispatcher.js';

test('a request starts the handler once and is accepted; the cleanup runs once, on CANCEL', async () => {
  const { world, dispatcher, provider } = await bench();
  const log: string[] = [];
  provider.provide(1001, (subscription) => {
    log.push(`start ${JSON.stringify(subscription.params)}`);
    return () => log.push('stop');
  });
  dispatcher.request(1001, 5, 1, { symbol: 'ACME' });
  await world.settle();
  dispatcher.request(1001, 5, 1, { symbol: 'ACME' });
  await world.settle();
  assert.deepEqual(dispatcher.take(), ['ACCEPTED 1001/5/1', 'ACCEPTED 1001/5/1']);
  assert.deepEqual([provider.subscriptions, provider.subscriptionsOf(1001)], [1, 1]);
  dispatcher.cancel(5, 0);
  await world.settle();
  assert.equal(provider.subscriptions, 1, 'a CANCEL of an older generation is not for this one');
  dispatcher.cancel(5);
  dispatcher.cancel(5);
  await world.settle();
  assert.deepEqual(log, ['start {"symbol":"ACME"}', 'stop']);
  assert.deepEqual(dispatcher.take(), []);
  assert.deepEqual([provider.subscriptions, provider.subscriptionsOf(1001)], [0, 0]);
});

test('a handler that is registered later gets one subscription, however often it was asked before (F2)', async () => {
  const { world, dispatcher, provider } = await bench();
  for (let attempt = 0; attempt < 4; attempt++) {
    dispatcher.request(100, 1);
    await world.settle();
  }
  assert.equal(dispatcher.of('REFUSED').length, 4);
  const refused = read(payload.refused, dispatcher.of('REFUSED')[0]);
  assert.deepEqual([refused.code, refused.retryable], ['NOT_PROVIDED', true]);
  dispatcher.take();
  let started = 0;
  provider.provide(100, () => {
    started++;
  });
  await world.settle();
  assert.deepEqual(read(payload.offer, dispatcher.of('OFFER')[0]).codes, [100]);
  for (let attempt = 0; attempt < 3; attempt++) dispatcher.request(100, 1);
  await world.settle();
  assert.equal(started, 1);
  assert.deepEqual(new Set(dispatcher.take()), new Set(['ACCEPTED 100/1/1']));
});

test('a slow handler is not started again by resent requests, and may still refuse (F2)', async () => {
  const { world, dispatcher, provider } = await bench();
  const starts: Subscription[] = [];
  let settle: (value?: unknown) => void = () => {};
  provider.provide(1, (subscription) => {
    starts.push(subscription);
    return new Promise((resolve) => {
      settle = resolve;
    });
  });
  for (let resend = 0; resend < 3; resend++) {
    dispatcher.request(1, 1);
    await world.settle();
  }
  assert.equal(starts.length, 1);
  assert.deepEqual(dispatcher.take(), []);
  assert.equal(starts[0]!.refuse('FORBIDDEN', 'not you', true), true);
  assert.equal(starts[0]!.refuse(), false);
  await world.settle();
  const refused = read(payload.refused, dispatcher.of('REFUSED')[0]);
  assert.deepEqual([refused.code, refused.message, refused.retryable], ['FORBIDDEN', 'not you', true]);
  let stopped = 0;
  settle(() => stopped++);
  await world.settle();
  assert.equal(stopped, 1, 'a cleanup that comes after the end runs at once');
  assert.deepEqual(dispatcher.take(), ['REFUSED 1/1/1']);
  assert.equal(provider.subscriptions, 0);
});

test('a higher generation replaces the subscription, a lower one is ignored', async () => {
  const { world, dispatcher, provider } = await bench();
  const log: string[] = [];
  provider.provide(1, ({ generation }) => {
    log.push(`start ${generation}`);
    return () => log.push(`stop ${generation}`);
  });
  for (const generation of [3, 5, 4]) dispatcher.request(1, 7, generation);
  dispatcher.probe(1, 7, 2);
  await world.settle();
  assert.deepEqual(log, ['start 3', 'stop 3', 'start 5']);
  assert.deepEqual(dispatcher.take(), ['ACCEPTED 1/7/3', 'ACCEPTED 1/7/5']);
  assert.equal(provider.subscriptions, 1);
});

test('a probe is answered; one that is not known is started (rule 5)', async () => {
  const { world, dispatcher, provider } = await bench();
  const started: unknown[] = [];
  provider.provide(1, ({ params }) => void started.push(params));
  dispatcher.request(1, 1, 1, 'a');
  dispatcher.probe(1, 1, 1, 'a');
  dispatcher.probe(1, 2, 4, 'b');
  dispatcher.probe(2, 3, 5);
  await world.settle();
  assert.deepEqual(started, ['a', 'b']);
  assert.deepEqual(dispatcher.take(), [
    'ACCEPTED 1/1/1',
    'PROBE_REPLY 1/1/1',
    'ACCEPTED 1/2/4',
    'PROBE_REPLY 1/2/4',
    'REFUSED 2/3/5',
  ]);
});

test('a provider probes by itself: answered, or told that nobody knows it', async () => {
  const { world, dispatcher, provider } = await bench();
  let subscription: Subscription | undefined;
  provider.provide(1, (given) => {
    subscription = given;
  });
  dispatcher.request(1, 1, 1, [7]);
  await world.settle();
  dispatcher.take();
  const first = subscription!.probe();
  assert.equal(subscription!.probe(), first);
  await world.settle();
  assert.deepEqual(read(payload.upstream, dispatcher.of('PROBE')[0]).params, new TextEncoder().encode('[7]'));
  assert.deepEqual(dispatcher.take(), ['PROBE 1/1/1']);
  dispatcher.send({ type: Type.PROBE_REPLY, code: 1, line: 1, generation: 1 });
  await world.settle();
  await first;
  const second = subscription!.probe();
  dispatcher.cancel(1);
  await world.settle();
  await assert.rejects(second, { code: 'ABORTED' });
  await assert.rejects(subscription!.probe(), { code: 'ABORTED' });
});

test('a handler that fails refuses, or ends what it had accepted (F25)', async () => {
  const { world, dispatcher, provider } = await bench();
  const errors: TrunklineError[] = [];
  provider.on('error', (error) => errors.push(error));
  const secret = new Error('secret');
  provider.provide(1, () => {
    throw secret;
  });
  provider.provide(2, async () => {
    throw secret;
  });
  provider.provide(3, () => {
    throw new TrunklineError('LIMIT_EXCEEDED', 'too many', { retryable: true });
  });
  provider.provide(4, async (subscription) => {
    subscription.respond('one');
    throw secret;
  });
  provider.provide(5, ({ params }) => void params);
  provider.provide(6, () => {});
  for (let code = 1; code <= 6; code++) dispatcher.request(code, code);
  dispatcher.send(
    { type: Type.REQUEST, code: 5, line: 9, generation: 1 },
    payload.upstream.encode({ params: Uint8Array.of(123) }),
  );
  await world.settle();
  const refusals = dispatcher.of('REFUSED').map((message) => {
    const { code, message: text, retryable } = read(payload.refused, message);
    return [message.line, code, text, retryable];
  });
  assert.deepEqual(
    refusals.sort((left, right) => Number(left[0]) - Number(right[0])),
    [
      [1, 'HANDLER_FAILED', 'the handler threw or rejected', false],
      [2, 'HANDLER_FAILED', 'the handler threw or rejected', false],
      [3, 'LIMIT_EXCEEDED', 'too many', true],
      [9, 'PARAMS_INVALID', 'params are not JSON, near character 1', false],
    ],
  );
  assert.equal(read(payload.end, dispatcher.of('END')[0]).code, 'HANDLER_FAILED');
  assert.deepEqual(
    errors.map(({ code, cause }) => [code, cause]),
    [1, 2, 3].map(() => ['HANDLER_FAILED', secret]),
  );
  assert.deepEqual([provider.subscriptionsOf(5), provider.subscriptionsOf(6), provider.subscriptions], [1, 1, 2]);
});

test('a cleanup that fails is an error event, and nothing else', async () => {
  const { world, dispatcher, provider } = await bench();
  const errors: string[] = [];
  provider.on('error', ({ code }) => {
    errors.push(code);
    throw new Error('a listener that fails');
  });
  provider.provide(1, () => () => {
    throw new Error('sync');
  });
  provider.provide(2, () => async () => {
    throw new Error('async');
  });
  for (const code of [1, 2]) dispatcher.request(code, code);
  await world.settle();
  for (const line of [1, 2]) dispatcher.cancel(line);
  await world.settle();
  assert.deepEqual(errors, ['HANDLER_FAILED', 'HANDLER_FAILED']);
  assert.equal(provider.subscriptions, 0);
});

test('a malformed request concerns nobody else', async () => {
  const { world, dispatcher, provider } = await bench();
  provider.provide(1, () => {});
  dispatcher.send({ type: Type.REQUEST, code: 1, line: 1, generation: 1 }, Uint8Array.of(0x0a, 0xff));
  dispatcher.send({ type: Type.STATUS, code: 1, line: 1, generation: 1 });
  dispatcher.request(1, 2);
  await world.settle();
  assert.deepEqual(dispatcher.take(), ['ACCEPTED 1/2/1']);
  assert.deepEqual({ ...provider.connection!.session!.faults }, { payload: 1, unexpected: 1 });
});

test('params given as false, zero or an empty string are not params left out (F49)', async () => {
  const { world, dispatcher, provider } = await bench();
  const params: unknown[] = [];
  provider.provide(1, (subscription) => void params.push(subscription.params, subscription.paramsBytes.length));
  for (const [index, value] of [0, false, '', {}, undefined].entries()) dispatcher.request(1, index + 1, 1, value);
  await world.settle();
  assert.deepEqual(params, [0, 1, false, 5, '', 2, {}, 2, undefined, 0]);
});
