import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ErrorCode, payload, TrunklineError } from '@trunkline/proto';
import type { Subscription } from '@trunkline/publisher/core';
import { type Bench, bench, read } from './scripted-dispatcher.js';

const code = (expected: ErrorCode) => (error: unknown) => error instanceof TrunklineError && error.code === expected;

async function subscribed({ world, dispatcher, provider }: Bench): Promise<Subscription> {
  let subscription: Subscription | undefined;
  provider.provide(1, (given) => {
    subscription = given;
  });
  dispatcher.request(1, 1);
  await world.settle();
  dispatcher.take();
  return subscription!;
}

test('responses carry body, flags and meta, in order', async () => {
  const it = await bench();
  const subscription = await subscribed(it);
  assert.equal(subscription.respond({ v: 0, b: false, s: '' }, { key: 'k', tag: 't', attrs: { v: 0 } }), true);
  subscription.respond('text', { key: 'ACME', contentType: 'text/plain' });
  subscription.respond(Uint8Array.of(255, 254));
  subscription.respond(new Uint8Array(0));
  subscription.respond();
  await it.world.settle();
  const [json, text, raw, empty, nothing] = it.dispatcher.of('RESPONSE');
  assert.deepEqual(json!.json(), { v: 0, b: false, s: '' });
  assert.deepEqual([json!.isJson, json!.key, json!.tag, json!.attrs.v, json!.sequence], [true, 'k', 't', 0, 0]);
  assert.deepEqual([text!.isJson, text!.text(), text!.contentType], [false, 'text', 'text/plain']);
  assert.deepEqual(raw!.body, Uint8Array.of(255, 254));
  assert.deepEqual([empty!.body.length, nothing!.body.length], [0, 0]);
  assert.deepEqual(it.dispatcher.take(), Array(5).fill('RESPONSE 1/1/1'));
});

test('a response in the handler accepts first; what it returns is the final one (rule 10)', async () => {
  const { world, dispatcher, provider } = await bench();
  provider.provide(1, (subscription) => {
    subscription.respond('first');
    return { last: true };
  });
  provider.provide(2, async () => 0);
  provider.provide(3, (subscription) => subscription.respond('still running'));
  provider.provide(4, () => false);
  for (const service of [1, 2, 3, 4]) dispatcher.request(service, service);
  await world.settle();
  const responses = dispatcher.of('RESPONSE').map((message) => [message.code, message.text(), message.final]);
  assert.deepEqual(
    responses.sort((left, right) => Number(left[0]) - Number(right[0])),
    [
      [1, 'first', false],
      [1, '{"last":true}', true],
      [2, '0', true],
      [3, 'still running', false],
      [4, 'false', true],
    ],
  );
  assert.deepEqual(dispatcher.take().slice(0, 3), ['ACCEPTED 1/1/1', 'RESPONSE 1/1/1', 'RESPONSE 1/1/1']);
  assert.deepEqual([provider.subscriptions, provider.subscriptionsOf(3)], [1, 1]);
});

test('a request that crossed with the final response does not start the handler again (F2)', async () => {
  const { world, dispatcher, provider } = await bench();
  let started = 0;
  provider.provide(1, () => ++started);
  dispatcher.request(1, 1, 1);
  dispatcher.request(1, 1, 1);
  dispatcher.probe(1, 1, 1);
  await world.settle();
  assert.deepEqual(dispatcher.take(), ['ACCEPTED 1/1/1', 'RESPONSE 1/1/1']);
  dispatcher.request(1, 1, 2);
  await world.settle();
  assert.deepEqual(dispatcher.take(), ['ACCEPTED 1/1/2', 'RESPONSE 1/1/2']);
  assert.equal(started, 2);
});

test('nothing is sent of what cannot be sent, and the subscription goes on', async () => {
  const it = await bench({ maxMessage: 1000 });
  const subscription = await subscribed(it);
  assert.equal(subscription.respond(new Uint8Array(1000 - 32)), true);
  assert.throws(() => subscription.respond(new Uint8Array(1000 - 31)), code('MESSAGE_TOO_LARGE'));
  assert.throws(() => subscription.respond('x', { attrs: { a: {} as never } }), code('META_INVALID'));
  assert.throws(() => subscription.respond(1n), code('BODY_INVALID'));
  assert.equal(subscription.respond('ok', { final: true }), true);
  assert.equal(subscription.respond('after the end'), false);
  await it.world.settle();
  assert.deepEqual(
    it.dispatcher.of('RESPONSE').map(({ length }) => length),
    [1000, 34],
  );
});

test('the first response that cannot be sent refuses the request', async () => {
  const { world, dispatcher, provider } = await bench({ maxMessage: 1000 });
  provider.provide(1, (subscription) => void subscription.respond(new Uint8Array(2000)));
  provider.provide(2, () => 'x'.repeat(2000));
  for (const service of [1, 2]) dispatcher.request(service, service);
  await world.settle();
  const refused = dispatcher.of('REFUSED').map((message) => read(payload.refused, message).code);
  assert.deepEqual(refused, ['MESSAGE_TOO_LARGE', 'MESSAGE_TOO_LARGE']);
  assert.deepEqual(dispatcher.take(), ['REFUSED 1/1/1', 'REFUSED 2/2/1']);
});

test('a body may respond while it is encoded', async () => {
  const it = await bench();
  const subscription = await subscribed(it);
  const tricky = {
    toJSON() {
      subscription.respond(Uint8Array.of(1, 2, 3), { key: 'inner' });
      return 'outer';
    },
  };
  subscription.respond(tricky, { key: 'outer' });
  await it.world.settle();
  const seen = it.dispatcher.of('RESPONSE').map((message) => [message.key, message.body.length, message.isJson]);
  assert.deepEqual(seen, [
    ['inner', 3, false],
    ['outer', 7, true],
  ]);
});

test('END ends it for the dispatcher and for the handler', async () => {
  const { world, dispatcher, provider } = await bench();
  const ends = [undefined, { exit: 0 }, { exit: -1, message: 'crashed' }, { code: 'FORBIDDEN', message: 'm' }] as const;
  let stopped = 0;
  provider.provide(1, (subscription) => {
    assert.throws(() => subscription.end({ exit: 1.5 }), code('OPTION_INVALID'));
    assert.equal(subscription.end(ends[Number(subscription.params)]), true);
    assert.equal(subscription.end(), false);
    assert.equal(subscription.respond('x'), false);
    assert.equal(subscription.signal.aborted, true);
    return () => stopped++;
  });
  for (let line = 0; line < ends.length; line++) dispatcher.request(1, line, 1, line);
  await world.settle();
  assert.deepEqual(
    dispatcher.of('END').map((message) => ({ ...read(payload.end, message) })),
    [
      { code: 'COMPLETED', message: '', exit: undefined },
      { code: 'EXITED', message: '', exit: 0 },
      { code: 'EXITED', message: 'crashed', exit: -1 },
      { code: 'FORBIDDEN', message: 'm', exit: undefined },
    ],
  );
  assert.equal(stopped, ends.length);
  assert.deepEqual(dispatcher.take().slice(0, 2), ['ACCEPTED 1/0/1', 'END 1/0/1']);
});

test('an accepted request cannot be refused', async () => {
  const it = await bench();
  const subscription = await subscribed(it);
  assert.throws(() => subscription.refuse(), code('STATE_INVALID'));
});

test('a loop that ignores "not taken" keeps memory bounded, and nothing is half sent (F38)', async () => {
  const window = 65536;
  const it = await bench({ receiveWindow: window });
  it.dispatcher.consuming = false;
  const subscription = await subscribed(it);
  const body = new Uint8Array(1000);
  let taken = 0;
  for (let index = 0; index < 100_000; index++) if (subscription.respond(body)) taken++;
  assert.equal(taken, Math.ceil(window / 1032));
  await it.world.settle();
  assert.equal(it.dispatcher.of('RESPONSE').length, taken);
  let drained = 0;
  const waits = [subscription.drained(), subscription.drained()];
  for (const wait of waits) wait.then(() => drained++);
  await it.world.settle();
  assert.equal(drained, 0);
  it.dispatcher.consume();
  await it.world.settle();
  assert.equal(drained, 2);
  await subscription.drained();
  assert.equal(subscription.respond(body), true);
});

test('a provider that waits for room sends everything, in order', async () => {
  const { world, dispatcher, provider } = await bench({ receiveWindow: 2000 });
  provider.provide(1, async (subscription) => {
    for (let index = 0; index < 500; index++) while (!subscription.respond(index)) await subscription.drained();
    return 'done';
  });
  dispatcher.request(1, 1);
  await world.settle();
  const bodies = dispatcher.of('RESPONSE');
  assert.equal(bodies.length, 501);
  const values = dispatcher.of('RESPONSE').map((message) => (message.isJson ? message.json() : message.text()));
  assert.deepEqual(values, [...Array.from({ length: 500 }, (_, index) => index), 'done']);
});

test('a final answer waits for room; waiting ends with the subscription', async () => {
  const { world, dispatcher, provider } = await bench({ receiveWindow: 64 });
  dispatcher.consuming = false;
  const failures: unknown[] = [];
  provider.on('error', (error) => failures.push(error));
  provider.provide(1, () => 'x'.repeat(100));
  provider.provide(2, async (subscription) => {
    while (!subscription.respond('y')) await subscription.drained();
  });
  dispatcher.request(1, 1);
  dispatcher.request(1, 2);
  dispatcher.request(2, 3);
  await world.settle();
  assert.equal(dispatcher.of('RESPONSE').length, 1);
  dispatcher.cancel(3);
  await world.settle();
  assert.equal(provider.subscriptions, 1);
  dispatcher.consume();
  await world.settle();
  assert.deepEqual(
    dispatcher.of('RESPONSE').map(({ line, final }) => [line, final]),
    [
      [1, true],
      [2, true],
    ],
  );
  assert.deepEqual(failures, [], 'a wait that is told of the end is no failure');
  assert.equal(provider.subscriptions, 0);
});

test('the signal is aborted with the reason, whenever it is asked for', async () => {
  const it = await bench();
  const subscription = await subscribed(it);
  const { signal } = subscription;
  assert.equal(signal.aborted, false);
  it.dispatcher.cancel(1);
  await it.world.settle();
  assert.equal(signal.aborted, true);
  assert.equal(signal.reason.code, 'ABORTED');
  assert.equal(subscription.over, true);
  await assert.rejects(subscription.drained(), { code: 'ABORTED' });
});
