import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeMessage, Flag, type TrunklineError, Type } from '@trunkline/proto';
import type { Message } from '@trunkline/subscriber/core';
import { type Setup, setUp } from './fake-dispatcher.js';

/** A promise to settle by hand. */
function gate(): { promise: Promise<void>; open: () => void } {
  let open = () => {};
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { promise, open };
}

/** Data bytes that the dispatcher's end may still send. */
const creditOf = ({ dispatcher }: Setup) => dispatcher.session!.credit;

test('F24: in ordered mode a handler waits for the promise of the one before it', async () => {
  const { client, dispatcher, world } = await setUp();
  const gates = Array.from({ length: 5 }, gate);
  const seen: string[] = [];
  const subscription = client.subscribe(100, {}, async ({ sequence }) => {
    seen.push(`begin ${sequence}`);
    await gates[sequence - 1]!.promise;
    seen.push(`done ${sequence}`);
  });
  subscription.on('gap', () => seen.push('gap'));
  subscription.on('end', () => seen.push('end'));
  await world.settle();
  for (let sequence = 1; sequence <= 3; sequence++) dispatcher.respond(1, sequence);
  dispatcher.gap(1, 1, 4, 4, '');
  dispatcher.respond(1, 5);
  dispatcher.end(1, 'COMPLETED');
  await world.settle();
  assert.deepEqual(seen, ['begin 1']);
  for (const { open } of [...gates].reverse()) open();
  await world.settle();
  const expected = [1, 2, 3].flatMap((sequence) => [`begin ${sequence}`, `done ${sequence}`]);
  assert.deepEqual(seen, [...expected, 'gap', 'begin 5', 'done 5', 'end']);
});

test('unordered handlers run side by side', async () => {
  const { client, dispatcher, world } = await setUp();
  const gates = [gate(), gate()];
  const seen: string[] = [];
  client.subscribe(100, { ordered: false }, async ({ sequence }) => {
    await gates[sequence - 1]!.promise;
    seen.push(`done ${sequence}`);
  });
  await world.settle();
  dispatcher.respond(1, 1);
  dispatcher.respond(1, 2);
  await world.settle();
  gates[1]!.open();
  await world.settle();
  gates[0]!.open();
  await world.settle();
  assert.deepEqual(seen, ['done 2', 'done 1']);
});

test('F24: a stuck handler keeps the session alive and other subscriptions running, within the credit window', async () => {
  const setup = await setUp({ limits: { receiveWindow: 10_000 } });
  const { client, dispatcher, world, connection } = setup;
  const stuck = gate();
  let handled = 0;
  let others = 0;
  client.subscribe(100, {}, async () => {
    handled++;
    await stuck.promise;
  });
  client.subscribe(101, {}, () => {
    others++;
  });
  await world.settle();
  const { session } = connection;
  for (let sequence = 1; sequence <= 20; sequence++) {
    dispatcher.respond(1, sequence, 'x'.repeat(100));
    dispatcher.respond(2, sequence, 'x'.repeat(100));
  }
  await world.settle();
  assert.deepEqual([handled, others], [1, 20]);
  assert.ok(creditOf(setup) < 10_000 - 20 * 132, 'the waiting messages are not given back');
  await world.advance(120_000);
  assert.equal(connection.session, session, 'heartbeats go on');
  dispatcher.respond(2, 21);
  await world.settle();
  assert.equal(others, 21);
  stuck.open();
  await world.settle();
  assert.equal(handled, 20);
  assert.ok(creditOf(setup) > 7_500, 'given back in steps of a quarter of the window');
});

test('F25: a handler that throws or rejects is an error event, and everything goes on', async () => {
  const { client, dispatcher, world, logged } = await setUp();
  const seen: unknown[] = [];
  const subscription = client.subscribe(100, {}, ({ sequence }) => {
    if (sequence === 2) throw new Error('two');
    if (sequence === 3) return Promise.reject('three');
    seen.push(sequence);
    return undefined;
  });
  await world.settle();
  for (let sequence = 1; sequence <= 5; sequence++) dispatcher.respond(1, sequence);
  const errors: TrunklineError[] = [];
  subscription.on('error', (error) => errors.push(error));
  await world.settle();
  assert.deepEqual(seen, [1, 4, 5]);
  assert.deepEqual(
    errors.map(({ code }) => code),
    ['HANDLER_FAILED', 'HANDLER_FAILED'],
  );
  assert.equal((errors[0]!.cause as Error).message, 'two');
  assert.equal(errors[1]!.cause, 'three');
  assert.deepEqual(logged, []);
});

test('an error event without a listener goes to the log; so does one whose listener throws', async () => {
  const { client, dispatcher, world, logged } = await setUp();
  const subscription = client.subscribe(100, {}, () => {
    throw new Error('no');
  });
  await world.settle();
  dispatcher.respond(1, 1);
  await world.settle();
  assert.deepEqual(logged, ['nobody listens to an error']);
  subscription.on('error', async () => {
    throw new Error('nor this');
  });
  dispatcher.respond(1, 2);
  await world.settle();
  assert.deepEqual(logged, ['nobody listens to an error', 'listener failed']);
});

test('listeners of other events that throw or reject disturb nothing', async () => {
  const { client, dispatcher, world } = await setUp();
  const errors: string[] = [];
  const seen: string[] = [];
  const subscription = client.subscribe(100);
  subscription.on('error', ({ code, message }) => errors.push(`${code} ${message}`));
  subscription.on('status', () => {
    throw new Error('status');
  });
  subscription.on('end', () => Promise.reject(new Error('end')));
  subscription.on('end', ({ code }) => seen.push(code));
  await world.settle();
  dispatcher.end(1, 'COMPLETED');
  await world.settle();
  assert.deepEqual(errors, ['HANDLER_FAILED status handler failed: status', 'HANDLER_FAILED end handler failed: end']);
  assert.deepEqual(seen, ['COMPLETED']);
});

/** A RESPONSE whose meta holds a tag of the bytes ff fe. */
function badMeta(sequence: number): Uint8Array {
  const message = encodeMessage({ type: Type.RESPONSE, code: 100, line: 1, sequence }, 'body', { tag: 'xx' });
  const at = message.indexOf(120);
  message[at] = 0xff;
  message[at + 1] = 0xfe;
  return message;
}

test('F50: a message whose meta cannot be read is one error event, and the next ones come', async () => {
  const { client, dispatcher, world, connection } = await setUp();
  const seen: string[] = [];
  const subscription = client.subscribe(100, {}, ({ sequence, tag }) => seen.push(`${sequence} ${tag}`));
  subscription.on('error', ({ code }) => seen.push(code));
  await world.settle();
  const { session } = connection;
  dispatcher.respond(1, 1, 'a', {}, { tag: 'one' });
  dispatcher.session!.sendData(badMeta(2), 0, badMeta(2).length, 1);
  dispatcher.respond(1, 3, 'a', {}, { tag: 'three' });
  await world.settle();
  assert.deepEqual(seen, ['1 one', 'META_INVALID', '3 three']);
  assert.equal(connection.session, session);
});

test('F50: a loop does not end with a message whose meta cannot be read', async () => {
  const { client, dispatcher, world } = await setUp();
  const errors: string[] = [];
  const subscription = client.subscribe(100);
  subscription.on('error', ({ code }) => errors.push(code));
  await world.settle();
  dispatcher.session!.sendData(badMeta(1), 0, badMeta(1).length, 1);
  dispatcher.respond(1, 2);
  dispatcher.end(1, 'COMPLETED');
  await world.settle();
  const seen: number[] = [];
  for await (const { sequence } of subscription) seen.push(sequence);
  assert.deepEqual([seen, errors], [[2], ['META_INVALID']]);
});

test('meta that nobody reads is never decoded', async () => {
  const { client, dispatcher, world } = await setUp();
  const seen: number[] = [];
  const subscription = client.subscribe(100, {}, ({ sequence }) => seen.push(sequence));
  subscription.on('error', () => assert.fail('nobody asked for the meta'));
  await world.settle();
  dispatcher.session!.sendData(badMeta(1), 0, badMeta(1).length, 1);
  await world.settle();
  assert.deepEqual(seen, [1]);
});

test('a loop gets what came before it began, in order, and ends with the stream', async () => {
  const { client, dispatcher, world } = await setUp();
  const subscription = client.subscribe(100);
  await world.settle();
  dispatcher.respond(1, 1);
  dispatcher.respond(1, 2);
  await world.settle();
  const seen: number[] = [];
  const loop = (async () => {
    for await (const { sequence } of subscription) seen.push(sequence);
  })();
  await world.settle();
  dispatcher.respond(1, 3);
  dispatcher.respond(1, 4, undefined, { flags: Flag.FINAL });
  await world.settle();
  await loop;
  assert.deepEqual(seen, [1, 2, 3, 4]);
  assert.equal(subscription.state, 'ended');
});

test('a loop that begins after the end still gets what came, without holding credit until then', async () => {
  const setup = await setUp({ limits: { receiveWindow: 1000 } });
  const { client, dispatcher, world } = setup;
  const subscription = client.subscribe(100);
  await world.settle();
  for (let sequence = 1; sequence <= 5; sequence++) dispatcher.respond(1, sequence, 'x'.repeat(100));
  await world.settle();
  assert.ok(creditOf(setup) < 500);
  dispatcher.end(1, 'COMPLETED');
  await world.settle();
  assert.ok(creditOf(setup) > 700, 'an abandoned subscription gives its bytes back');
  const seen: number[] = [];
  for await (const { sequence } of subscription) seen.push(sequence);
  assert.deepEqual(seen, [1, 2, 3, 4, 5]);
  await world.settle();
  assert.ok(creditOf(setup) <= 1000, 'and gives them back once');
});

test('a loop throws what ended the stream, after the messages before it', async () => {
  const { client, dispatcher, world } = await setUp();
  const subscription = client.subscribe(100);
  await world.settle();
  const seen: number[] = [];
  const loop = (async () => {
    for await (const { sequence } of subscription) seen.push(sequence);
  })();
  const rejected = assert.rejects(loop, { code: 'SERVICE_REMOVED', message: 'gone' });
  dispatcher.respond(1, 1);
  dispatcher.end(1, 'SERVICE_REMOVED', 'gone');
  await world.settle();
  await rejected;
  assert.deepEqual(seen, [1]);
  await subscription.unsubscribe();
  await assert.rejects(subscription[Symbol.asyncIterator]().next(), { code: 'SERVICE_REMOVED' });
  const other = client.subscribe(100);
  await world.settle();
  dispatcher.end(2, 'EXITED', 'failed', 3);
  await world.settle();
  await assert.rejects(other[Symbol.asyncIterator]().next(), { code: 'EXITED', exit: 3 });
});

test('a loop over a refused request throws the refusal', async () => {
  const { client, dispatcher, world } = await setUp({ accepting: false });
  dispatcher.onRequest = (asked) => dispatcher.refuse(asked, 'UNKNOWN_SERVICE');
  const subscription = client.subscribe(100);
  subscription.on('error', () => {});
  const next = assert.rejects(subscription[Symbol.asyncIterator]().next(), { code: 'UNKNOWN_SERVICE' });
  await world.settle();
  await next;
});

test('leaving the loop unsubscribes; unsubscribe after it is no error', async () => {
  const { client, dispatcher, world } = await setUp();
  const subscription = client.subscribe(100);
  await world.settle();
  dispatcher.respond(1, 1);
  await world.settle();
  for await (const { sequence } of subscription) {
    assert.equal(sequence, 1);
    break;
  }
  await world.settle();
  assert.equal(subscription.state, 'ended');
  assert.deepEqual(dispatcher.cancelled, [1]);
  await subscription.unsubscribe();
});

test('leaving one of two loops, or a loop beside a handler, ends nothing', async () => {
  const { client, dispatcher, world } = await setUp();
  let handled = 0;
  const subscription = client.subscribe(100, {}, () => {
    handled++;
  });
  const iterators = [subscription[Symbol.asyncIterator](), subscription[Symbol.asyncIterator]()] as const;
  await world.settle();
  dispatcher.respond(1, 1);
  await world.settle();
  const results = await Promise.all(iterators.map((iterator) => iterator.next()));
  assert.deepEqual(
    results.map(({ value }) => value?.sequence),
    [1, 1],
  );
  for (const iterator of iterators) await iterator.return();
  await world.settle();
  assert.deepEqual([handled, subscription.state], [1, 'live']);
  assert.deepEqual(dispatcher.cancelled, []);
});

test('a loop gives a message back when it takes the next one', async () => {
  const setup = await setUp({ limits: { receiveWindow: 1000 } });
  const { client, dispatcher, world } = setup;
  const iterator = client.subscribe(100)[Symbol.asyncIterator]();
  await world.settle();
  for (let sequence = 1; sequence <= 4; sequence++) dispatcher.respond(1, sequence, 'x'.repeat(218));
  await world.settle();
  assert.equal(creditOf(setup), 0);
  await iterator.next();
  await world.settle();
  assert.equal(creditOf(setup), 0, 'the loop works on the first');
  await iterator.next();
  await world.settle();
  assert.equal(creditOf(setup), 250);
  await iterator.return();
  await world.settle();
  assert.equal(creditOf(setup), 1000);
  assert.deepEqual(await iterator.next(), { done: true, value: undefined });
});

test('several takes that wait at once are served in order, each giving back the one before', async () => {
  const setup = await setUp({ limits: { receiveWindow: 1000 } });
  const { client, dispatcher, world } = setup;
  const iterator = client.subscribe(100)[Symbol.asyncIterator]();
  const takes = [iterator.next(), iterator.next()];
  await world.settle();
  for (let sequence = 1; sequence <= 2; sequence++) dispatcher.respond(1, sequence, 'x'.repeat(468));
  await world.settle();
  const taken = (await Promise.all(takes)).map(({ value }) => value?.sequence);
  assert.deepEqual([taken, creditOf(setup)], [[1, 2], 500]);
});

test('unsubscribe ends waiting loops and drops what waits', async () => {
  const setup = await setUp({ limits: { receiveWindow: 1000 } });
  const { client, dispatcher, world } = setup;
  const stuck = gate();
  const seen: number[] = [];
  const subscription = client.subscribe(100, {}, async ({ sequence }) => {
    seen.push(sequence);
    await stuck.promise;
  });
  const idle = client.subscribe(101)[Symbol.asyncIterator]();
  const waiting = idle.next();
  await world.settle();
  for (let sequence = 1; sequence <= 4; sequence++) dispatcher.respond(1, sequence, 'x'.repeat(218));
  await world.settle();
  const ends: string[] = [];
  subscription.on('end', ({ code }) => ends.push(code));
  await subscription.unsubscribe();
  assert.deepEqual(ends, ['CLOSED']);
  stuck.open();
  await world.settle();
  assert.deepEqual(seen, [1]);
  assert.equal(creditOf(setup), 1000);
  await idle.return();
  assert.deepEqual(await waiting, { done: true, value: undefined });
});

test('unsubscribe right behind an end that waits for a handler tells the end once', async () => {
  const { client, dispatcher, world } = await setUp();
  const stuck = gate();
  const ends: string[] = [];
  const subscription = client.subscribe(100, {}, () => stuck.promise);
  subscription.on('end', ({ code }) => ends.push(code));
  await world.settle();
  dispatcher.respond(1, 1);
  dispatcher.end(1, 'COMPLETED');
  await world.settle();
  assert.deepEqual([subscription.state, ends], ['ended', []]);
  await subscription.unsubscribe();
  stuck.open();
  await world.settle();
  assert.deepEqual(ends, ['COMPLETED']);
});

test('rule 8: unsubscribing inside of a handler is its last call, also within a batch', async () => {
  const { client, dispatcher, world } = await setUp();
  const seen: number[] = [];
  const subscription = client.subscribe(100, {}, ({ sequence }) => {
    seen.push(sequence);
    if (sequence === 2) subscription.unsubscribe();
  });
  await world.settle();
  for (let sequence = 1; sequence <= 4; sequence++) dispatcher.respond(1, sequence);
  await world.settle();
  assert.deepEqual(seen, [1, 2]);
});

test('a message listener that comes later gets what waited; on, once and off', async () => {
  const { client, dispatcher, world } = await setUp();
  const subscription = client.subscribe(100);
  await world.settle();
  dispatcher.respond(1, 1);
  await world.settle();
  const seen: string[] = [];
  const listener = ({ sequence }: Message) => seen.push(`on ${sequence}`);
  const never = () => seen.push('never');
  subscription.on('message', listener);
  subscription.once('message', ({ sequence }) => seen.push(`once ${sequence}`));
  subscription.once('message', never);
  subscription.off('message', never);
  assert.deepEqual(seen, [], 'not inside of the call that adds the listener');
  await world.settle();
  dispatcher.respond(1, 2);
  await world.settle();
  subscription.off('message', listener);
  dispatcher.respond(1, 3);
  await world.settle();
  assert.deepEqual(seen, ['on 1', 'once 1', 'on 2']);
});

test('a handler that subscribes and sends inside of a message is called for the next one after it', async () => {
  const { client, dispatcher, world } = await setUp();
  const seen: string[] = [];
  client.subscribe(100, {}, ({ sequence }) => {
    seen.push(`first ${sequence}`);
    if (sequence === 1) client.subscribe(101, {}, (message) => seen.push(`second ${message.sequence}`));
  });
  await world.settle();
  dispatcher.respond(1, 1);
  dispatcher.respond(1, 2);
  await world.settle();
  dispatcher.respond(2, 1);
  await world.settle();
  assert.deepEqual(seen, ['first 1', 'first 2', 'second 1']);
});

test('bytes shared by two subscriptions of a line are given back when both are done', async () => {
  const setup = await setUp({ accepting: false, limits: { receiveWindow: 1000 } });
  const { client, dispatcher, world } = setup;
  dispatcher.onRequest = (asked) => dispatcher.accept(asked, { line: 9 });
  const gates = [gate(), gate()];
  for (const { promise } of gates) client.subscribe(100, {}, () => promise);
  await world.settle();
  dispatcher.respond(9, 1, 'x'.repeat(968));
  await world.settle();
  gates[0]!.open();
  await world.settle();
  assert.equal(creditOf(setup), 0);
  gates[1]!.open();
  await world.settle();
  assert.equal(creditOf(setup), 1000);
});
