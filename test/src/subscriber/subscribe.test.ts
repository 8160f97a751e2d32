import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { decodeParams, Flag, payload, type TrunklineError } from '@trunkline/proto';
import type { Message, Subscription } from '@trunkline/subscriber/core';
import { ADDRESS, EPOCH, setUp } from './fake-dispatcher.js';

const { KEPT, LIVE, AFTER } = payload.StartFrom;

/** Everything a subscription tells, as lines of text. */
function record(subscription: Subscription, lines: string[] = []): string[] {
  subscription.on('message', (message) => lines.push(`message ${message.sequence}${message.snapshot ? ' kept' : ''}`));
  subscription.on('accepted', ({ sequence, resumed }) =>
    lines.push(`accepted ${sequence}${resumed ? ' resumed' : ''}`),
  );
  subscription.on('status', ({ state, generation }) => lines.push(`status ${state} ${generation}`));
  subscription.on('gap', ({ count, reason }) => lines.push(`gap ${count} ${reason}`));
  subscription.on('end', ({ code, exit }) => lines.push(`end ${code}${exit === undefined ? '' : ` ${exit}`}`));
  subscription.on('error', ({ code }) => lines.push(`error ${code}`));
  return lines;
}

test('a REQUEST carries every option, and its answer is told', async () => {
  const { client, dispatcher, world } = await setUp();
  const subscription = client.subscribe(1001, {
    params: { b: 1, a: 'x' },
    filter: 'attrs.price > 1.0',
    return: 'latest',
    group: 'g',
    rate: 5,
    overflow: 'latest',
    start: 'live',
  });
  assert.equal(subscription.state, 'pending');
  const lines = record(subscription);
  await world.settle();
  const { code, request } = dispatcher.asked[0]!;
  assert.equal(code, 1001);
  assert.notEqual(request.request, 0);
  assert.deepEqual(decodeParams(request.params), { a: 'x', b: 1 });
  const { filter, returnHandler, group, rate, overflow, start } = request;
  assert.deepEqual(
    [filter, returnHandler, group, rate, overflow, start.from],
    ['attrs.price > 1.0', 'latest', 'g', 5, 'latest', LIVE],
  );
  await subscription.accepted();
  assert.deepEqual(lines, ['accepted 0', 'status live 1']);
  assert.deepEqual([subscription.state, subscription.generation, [...subscription.epoch]], ['live', 1, [...EPOCH]]);
  assert.deepEqual(subscription.params, { b: 1, a: 'x' });
});

test('blank filters are no filter, absent params are no bytes, and the reading begins with what is kept', async () => {
  const { client, dispatcher, world } = await setUp();
  client.subscribe(1, { filter: ' ' });
  await world.settle();
  const { filter, params, start } = dispatcher.asked[0]!.request;
  assert.deepEqual([filter, params.length, start.from], ['', 0, KEPT]);
});

test('bad options are coded errors at once', async () => {
  const { client } = await setUp();
  const code = (run: () => unknown) => {
    try {
      run();
    } catch (error) {
      return (error as TrunklineError).code;
    }
    return undefined;
  };
  for (const bad of [-1, 1.5, 2 ** 32, Number.NaN, '7' as never]) {
    assert.equal(
      code(() => client.subscribe(bad)),
      'OPTION_INVALID',
    );
  }
  const options = [
    { filter: 5 },
    { rate: -1 },
    { rate: 0.5 },
    { overflow: 'keep' },
    { start: 'first' },
    { start: null },
    { start: { after: -1 } },
    { start: { after: 1, epoch: 'x' } },
    { ordered: 'yes' },
    { group: {} },
    null,
  ];
  for (const bad of options)
    assert.equal(
      code(() => client.subscribe(1, bad as never)),
      'OPTION_INVALID',
    );
  assert.equal(
    code(() => client.subscribe(1, {}, 'handler' as never)),
    'OPTION_INVALID',
  );
  assert.equal(
    code(() => client.run({ code: 1 } as never)),
    'OPTION_INVALID',
  );
  assert.equal(
    code(() => client.subscribe(1, { params: Number.NaN })),
    'PARAMS_INVALID',
  );
  assert.equal(
    code(() => client.subscribe(1, { signal: AbortSignal.abort() })),
    'ABORTED',
  );
  assert.equal(client.counts.subscriptions, 0);
});

test('messages come lazily decoded, and views of what was sent', async () => {
  const { client, dispatcher, world } = await setUp();
  const got: Message[] = [];
  client.subscribe(100, {}, (message) => got.push(message));
  await world.settle();
  dispatcher.respond(1, 7, { price: 1.5 }, { flags: Flag.REDELIVERED }, { tag: 't', key: 'k', attrs: { price: 1.5 } });
  dispatcher.respond(1, 8, 'text', {}, { contentType: 'text/plain' });
  await world.settle();
  const [first, second] = got as [Message, Message];
  assert.deepEqual([first.code, first.sequence, first.generation], [100, 7, 1]);
  assert.deepEqual([first.tag, first.key, first.attrs.price, first.redelivered], ['t', 'k', 1.5, true]);
  assert.deepEqual([first.snapshot, first.final, first.json()], [false, false, { price: 1.5 }]);
  assert.deepEqual([second.text(), second.contentType, second.redelivered], ['text', 'text/plain', false]);
  assert.throws(() => second.json(), { code: 'BODY_INVALID' });
});

test('F51: an empty body is a message, once', async () => {
  const { client, dispatcher, world } = await setUp();
  const bodies: number[] = [];
  client.subscribe(100, {}, ({ body }) => bodies.push(body.length));
  await world.settle();
  dispatcher.respond(1, 1, new Uint8Array(0));
  await world.settle();
  assert.deepEqual(bodies, [0]);
});

test('F14: the same request twice shares a line; each handle gets everything and ends alone', async () => {
  const { client, dispatcher, world } = await setUp({ accepting: false });
  dispatcher.onRequest = (asked) => dispatcher.accept(asked, { line: 9 });
  const seen: string[] = [];
  const first = client.subscribe(100, {}, ({ sequence }) => seen.push(`first ${sequence}`));
  const second = client.subscribe(100, {}, ({ sequence }) => seen.push(`second ${sequence}`));
  await world.settle();
  assert.deepEqual(client.counts, { subscriptions: 2, lines: 1, calls: 0, sends: 0 });
  dispatcher.respond(9, 1);
  await world.settle();
  await first.unsubscribe();
  dispatcher.respond(9, 2);
  await world.settle();
  assert.deepEqual(seen, ['first 1', 'second 1', 'second 2']);
  await second.unsubscribe();
  await world.settle();
  assert.deepEqual(dispatcher.cancelled, [1, 2]);
  await assert.rejects(second.unsubscribe(), { code: 'NOT_SUBSCRIBED' });
  await world.settle();
  assert.deepEqual(dispatcher.cancelled, [1, 2]);
  assert.deepEqual(client.counts, { subscriptions: 0, lines: 0, calls: 0, sends: 0 });
});

test('a snapshot goes to the one that joins, and what was sent to the line before does not', async () => {
  const { client, dispatcher, world } = await setUp({ accepting: false });
  const seen: string[] = [];
  dispatcher.onRequest = (asked) => dispatcher.accept(asked, { line: 9 });
  client.subscribe(100, {}, ({ sequence }) => seen.push(`old ${sequence}`));
  await world.settle();
  dispatcher.onRequest = (asked) => {
    dispatcher.accept(asked, { line: 9, sequence: 3, snapshot: true });
    dispatcher.respond(9, 3, undefined, { flags: Flag.SNAPSHOT });
    dispatcher.respond(9, 3, undefined, { flags: Flag.SNAPSHOT_END });
    // were waiting for credit when the second one joined
    dispatcher.respond(9, 2);
    dispatcher.respond(9, 3);
    dispatcher.respond(9, 4);
  };
  client.subscribe(100, {}, ({ sequence, snapshot }) => seen.push(`new ${sequence}${snapshot ? ' kept' : ''}`));
  await world.settle();
  assert.deepEqual(seen, ['new 3 kept', 'old 2', 'old 3', 'old 4', 'new 4']);
});

test('a snapshot for a request that was cancelled meanwhile is for nobody', async () => {
  const { client, dispatcher, world } = await setUp({ accepting: false });
  const seen: string[] = [];
  dispatcher.onRequest = (asked) => dispatcher.accept(asked, { line: 9 });
  client.subscribe(100, {}, ({ sequence }) => seen.push(`live ${sequence}`));
  await world.settle();
  dispatcher.onRequest = () => {};
  await client.subscribe(100, {}, () => seen.push('cancelled')).unsubscribe();
  await world.settle();
  dispatcher.accept(dispatcher.asked[1]!, { line: 9, snapshot: true, sequence: 3 });
  dispatcher.respond(9, 3, undefined, { flags: Flag.SNAPSHOT });
  dispatcher.respond(9, 3, undefined, { flags: Flag.SNAPSHOT_END });
  dispatcher.respond(9, 4);
  await world.settle();
  assert.deepEqual(seen, ['live 4']);
});

test('an answer that comes twice changes nothing, and its snapshot is for nobody', async () => {
  const { client, dispatcher, world } = await setUp({ accepting: false });
  const lines = record(client.subscribe(100));
  await world.settle();
  for (const asked of [dispatcher.asked[0]!, dispatcher.asked[0]!]) {
    dispatcher.accept(asked, { line: 4, snapshot: true, sequence: 1 });
    dispatcher.respond(4, 1, undefined, { flags: Flag.SNAPSHOT });
    dispatcher.respond(4, 1, undefined, { flags: Flag.SNAPSHOT_END });
  }
  await world.advance(200_000);
  assert.deepEqual(lines, ['accepted 1', 'status live 1', 'message 1 kept']);
  assert.deepEqual(dispatcher.requests, [1], 'nothing is sent again');
});

test('a REQUEST is not sent again within its session, and at once in the next', async () => {
  const { client, dispatcher, reconnect, world } = await setUp({ accepting: false });
  client.subscribe(100);
  await world.advance(600_000);
  assert.equal(dispatcher.asked.length, 1);
  await reconnect();
  assert.deepEqual(dispatcher.requests, [1, 1]);
});

test('status, gap and end come typed (F18), and the handler never gets anything else than messages', async () => {
  const { client, dispatcher, world } = await setUp();
  const values: unknown[] = [];
  const subscription = client.subscribe(100, {}, (message) => values.push(message.sequence));
  const lines = record(subscription);
  await world.settle();
  dispatcher.status(1, 'stale', 'probe unanswered');
  await world.settle();
  assert.equal(subscription.state, 'stale');
  dispatcher.status(1, 'live', 'provider restarted', 2);
  dispatcher.respond(1, 1, undefined, { generation: 2 });
  dispatcher.gap(1, 3, 2, 4, 'outbox full');
  dispatcher.end(1, 'SERVICE_REMOVED', 'taken out');
  await world.settle();
  assert.deepEqual(lines, [
    'accepted 0',
    'status live 1',
    'status stale 1',
    'status live 2',
    'message 1',
    'gap 3 outbox full',
    'end SERVICE_REMOVED',
  ]);
  assert.deepEqual(values, [1]);
  assert.deepEqual([subscription.state, subscription.generation], ['ended', 2]);
  await subscription.unsubscribe();
  await assert.rejects(subscription.unsubscribe(), { code: 'NOT_SUBSCRIBED' });
  await world.settle();
  assert.deepEqual(dispatcher.cancelled, []);
});

test('the exit code of a command comes with the end', async () => {
  const { client, dispatcher, world } = await setUp();
  const lines = record(client.subscribe(100));
  const other = record(client.subscribe(100));
  await world.settle();
  dispatcher.end(1, 'EXITED', '', 0);
  dispatcher.end(2, 'A_CODE_OF_TOMORROW', '', 3);
  await world.settle();
  assert.equal(lines.at(-1), 'end EXITED 0');
  assert.equal(other.at(-1), 'end REFUSED 3');
});

test('a response flagged FINAL ends the subscription for everyone on the line', async () => {
  const { client, dispatcher, world } = await setUp({ accepting: false });
  dispatcher.onRequest = (asked) => dispatcher.accept(asked, { line: 9 });
  const lines = record(client.subscribe(100));
  record(client.subscribe(100), lines);
  await world.settle();
  lines.length = 0;
  dispatcher.respond(9, 1, 'last', { flags: Flag.FINAL });
  dispatcher.end(9, 'COMPLETED');
  await world.settle();
  assert.deepEqual(lines, ['message 1', 'message 1', 'end COMPLETED', 'end COMPLETED']);
  assert.deepEqual(client.counts, { subscriptions: 0, lines: 0, calls: 0, sends: 0 });
  assert.deepEqual(dispatcher.cancelled, []);
});

test('F15: a refused request is final: told once, never sent again', async () => {
  const { client, dispatcher, world, reconnect } = await setUp({ accepting: false });
  dispatcher.onRequest = (asked) => dispatcher.refuse(asked, 'FILTER_INVALID', { position: 4 });
  const subscription = client.subscribe(100);
  const lines = record(subscription);
  await assert.rejects(
    Promise.all([subscription.accepted(), world.settle()]),
    (error: TrunklineError) => error.code === 'FILTER_INVALID' && error.position === 4,
  );
  await assert.rejects(subscription.accepted(), { code: 'FILTER_INVALID' });
  assert.deepEqual(lines, ['error FILTER_INVALID', 'end FILTER_INVALID']);
  await reconnect();
  assert.equal(dispatcher.sessions, 2);
  assert.equal(dispatcher.asked.length, 1);
  await subscription.unsubscribe();
  await client.close();
});

test('a refusal that nobody listens to is in the log and rejects nothing', async () => {
  const { client, dispatcher, world, logged } = await setUp({ accepting: false });
  dispatcher.onRequest = (asked) => dispatcher.refuse(asked, 'UNKNOWN_SERVICE');
  const subscription = client.subscribe(100);
  await world.settle();
  assert.equal(subscription.state, 'ended');
  assert.deepEqual(logged, ['nobody listens to an error']);
});

test('F8: subscribe, unsubscribe, subscribe while the first answer is pending', async () => {
  const { client, dispatcher, world } = await setUp({ accepting: false });
  const seen: string[] = [];
  const first = client.subscribe(100, {}, () => seen.push('first'));
  await first.unsubscribe();
  const second = client.subscribe(100, {}, ({ sequence }) => seen.push(`second ${sequence}`));
  await world.settle();
  assert.deepEqual([dispatcher.requests, dispatcher.cancelled], [[1, 2], [1]]);
  // the late answer of the first, with a snapshot, and then that of the second
  dispatcher.accept(dispatcher.asked[0]!, { line: 5, snapshot: true });
  dispatcher.respond(5, 1, undefined, { flags: Flag.SNAPSHOT });
  dispatcher.respond(5, 1, undefined, { flags: Flag.SNAPSHOT_END });
  dispatcher.accept(dispatcher.asked[1]!, { line: 5 });
  dispatcher.respond(5, 2);
  await world.settle();
  assert.deepEqual(seen, ['second 2']);
  await second.unsubscribe();
  dispatcher.respond(5, 3);
  await world.settle();
  assert.deepEqual(seen, ['second 2']);
  assert.deepEqual(client.counts, { subscriptions: 0, lines: 0, calls: 0, sends: 0 });
  assert.deepEqual(dispatcher.session!.faults, {});
});

test('F7: subscriptions before there is a session go out once each when it comes', async () => {
  const { client, dispatcher, world, network } = await setUp({ offline: true });
  for (let code = 1; code <= 200; code++) client.subscribe(code);
  client.subscribe(1);
  await world.advance(20_000);
  await network.listen(ADDRESS, dispatcher);
  await world.advance(20_000);
  assert.equal(dispatcher.asked.length, 201);
  assert.equal(new Set(dispatcher.requests).size, 201);
});

test('F13: nothing stays of subscriptions that ended', async () => {
  const { client, world } = await setUp();
  const idle = world.timers.size;
  for (let round = 0; round < 20; round++) {
    const all = Array.from({ length: 50 }, (_, index) => client.subscribe(100, { params: { round, index } }));
    if (round % 2 === 0) await world.settle();
    await Promise.all(all.map((subscription) => subscription.unsubscribe()));
    await world.settle();
  }
  assert.deepEqual(client.counts, { subscriptions: 0, lines: 0, calls: 0, sends: 0 });
  assert.equal(world.timers.size, idle);
});

test('an abort ends the subscription and leaves no listener at the signal', async () => {
  const { client, dispatcher, world } = await setUp();
  const controller = new AbortController();
  const { signal } = controller;
  await client.subscribe(100, { signal }).unsubscribe();
  assert.equal(getEventListeners(signal, 'abort').length, 0);
  const subscription = client.subscribe(100, { signal });
  const lines = record(subscription);
  await world.settle();
  controller.abort(new Error('enough'));
  await world.settle();
  assert.equal(lines.at(-1), 'end ABORTED');
  assert.deepEqual(dispatcher.cancelled, [1, 2]);
  await assert.rejects(
    async () => {
      for await (const _ of subscription) assert.fail('nothing comes');
    },
    { code: 'ABORTED' },
  );
});

test('accepted() gives up with its signal, and rejects when the subscription ends before the answer', async () => {
  const { client, world } = await setUp({ accepting: false });
  const subscription = client.subscribe(100);
  const controller = new AbortController();
  const waiting = subscription.accepted(controller.signal);
  const other = subscription.accepted();
  controller.abort();
  await assert.rejects(waiting, { code: 'ABORTED' });
  await assert.rejects(subscription.accepted(AbortSignal.abort()), { code: 'ABORTED' });
  const ended = assert.rejects(other, { code: 'CLOSED' });
  await subscription.unsubscribe();
  await ended;
  await world.settle();
});

test('a request larger than the peer takes is refused here and disturbs nothing', async () => {
  const { client, dispatcher, world } = await setUp({ dispatcherLimits: { maxMessage: 1000 } });
  const subscription = client.subscribe(100, { params: 'x'.repeat(1000) });
  const lines = record(subscription);
  const other = client.subscribe(101);
  await world.settle();
  assert.deepEqual(lines, ['error MESSAGE_TOO_LARGE', 'end MESSAGE_TOO_LARGE']);
  await other.accepted();
  assert.deepEqual([dispatcher.asked.length, dispatcher.cancelled.length], [1, 0]);
  await subscription.unsubscribe();
});

test('await using unsubscribes, and does not mind that it was done', async () => {
  const { client, dispatcher, world } = await setUp();
  {
    await using subscription = client.subscribe(100);
    await world.settle();
    await subscription.accepted();
  }
  {
    await using subscription = client.subscribe(100);
    await subscription.unsubscribe();
  }
  await world.settle();
  assert.deepEqual(dispatcher.cancelled, [1, 2]);
});

test('a task object gets everything in its methods', async () => {
  const { client, dispatcher, world } = await setUp();
  class Watch {
    readonly code = 100;
    readonly params = { site: 1 };
    readonly options = { filter: 'tag == "x"' };
    readonly lines: string[] = [];
    onMessage(message: Message): void {
      if (message.sequence === 2) throw new Error('two');
      this.lines.push(`message ${message.sequence}`);
    }
    onStatus({ state }: { state: string }): void {
      this.lines.push(state);
    }
    onGap({ count }: { count: number }): void {
      this.lines.push(`gap ${count}`);
    }
    onEnd({ code }: { code: string }): void {
      this.lines.push(code);
    }
    onError(error: TrunklineError): void {
      this.lines.push(`${error.code} ${(error.cause as Error).message}`);
    }
  }
  const task = new Watch();
  client.run(task);
  await world.settle();
  assert.equal(dispatcher.asked[0]!.request.filter, 'tag == "x"');
  dispatcher.respond(1, 1);
  dispatcher.respond(1, 2);
  dispatcher.gap(1, 4, 0, 0, '');
  dispatcher.end(1, 'COMPLETED');
  await world.settle();
  assert.deepEqual(task.lines, ['live', 'message 1', 'HANDLER_FAILED two', 'gap 4', 'COMPLETED']);
});

test('messages for a line that nobody has are consumed and otherwise ignored', async () => {
  const { client, dispatcher, world, connection } = await setUp({ limits: { receiveWindow: 1000 } });
  for (let sequence = 1; sequence <= 50; sequence++) dispatcher.respond(77, sequence, 'x'.repeat(100));
  dispatcher.status(77, 'stale');
  dispatcher.end(77, 'COMPLETED');
  await world.settle();
  assert.ok(dispatcher.session!.credit > 0, 'the credit came back');
  assert.equal(connection.session!.state, 'open');
  assert.equal(client.counts.lines, 0);
});

test('rule 9: start names a position of an earlier history', async () => {
  const { client, dispatcher, world } = await setUp({ accepting: false });
  dispatcher.onRequest = (asked) => {
    dispatcher.accept(asked, { line: 5, snapshot: true, resumed: true, sequence: 12 });
    dispatcher.respond(5, 12, undefined, { flags: Flag.SNAPSHOT });
    dispatcher.respond(5, 12, undefined, { flags: Flag.SNAPSHOT_END });
  };
  const lines = record(client.subscribe(100, { start: { after: 11, epoch: EPOCH } }));
  await world.settle();
  const { start } = dispatcher.asked[0]!.request;
  assert.deepEqual([start.from, start.sequence, [...start.epoch]], [AFTER, 11, [...EPOCH]]);
  assert.deepEqual(lines, ['accepted 12 resumed', 'status live 1', 'message 12 kept']);
});
