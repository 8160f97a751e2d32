import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  bodyStart,
  Connection,
  encodeMessage,
  Flag,
  HEADER_BYTES,
  OFFSET,
  type Role,
  readU32,
  silentLog,
  TrunklineError,
} from '@trunkline/proto';
import { Client, type Message } from '@trunkline/subscriber/core';
import { ADDRESS, setUp } from './fake-dispatcher.js';

const NOTHING = { subscriptions: 0, lines: 0, calls: 0, sends: 0 };

// ---- request ----

test('rule 10: request resolves with the first final response, whatever came before it', async () => {
  const { client, dispatcher, world } = await setUp();
  const idle = world.timers.size;
  const answer = client.request(2001, { params: { id: 7 } });
  await world.settle();
  dispatcher.respond(1, 1, 'part');
  dispatcher.respond(1, 2, { name: 'x' }, { flags: Flag.FINAL });
  await world.settle();
  const message = await answer;
  assert.deepEqual([message.sequence, message.final, message.json()], [2, true, { name: 'x' }]);
  assert.deepEqual(client.counts, NOTHING);
  assert.deepEqual(dispatcher.cancelled, []);
  assert.equal(world.timers.size, idle);
});

test('identical concurrent requests share one; other params and later ones do not', async () => {
  const { client, dispatcher, world } = await setUp();
  const first = client.request(2001, { params: { a: 1, b: 2 } });
  const same = client.request(2001, { params: { b: 2, a: 1 } });
  const other = client.request(2001, { params: { a: 1 } });
  await world.settle();
  assert.equal(dispatcher.asked.length, 2);
  dispatcher.respond(1, 1, 'one', { flags: Flag.FINAL });
  dispatcher.respond(2, 1, 'two', { flags: Flag.FINAL });
  await world.settle();
  const bodies = (await Promise.all([first, same, other])).map((message) => message.text());
  assert.deepEqual(bodies, ['one', 'one', 'two']);
  const later = client.request(2001, { params: { a: 1, b: 2 } });
  await world.settle();
  assert.equal(dispatcher.asked.length, 3);
  dispatcher.respond(3, 1, '', { flags: Flag.FINAL });
  await world.settle();
  assert.equal((await later).body.length, 0);
});

test('a request that is refused, ends without an answer or gets none in time rejects with a code', async () => {
  const { client, dispatcher, world, logged } = await setUp({ accepting: false });
  dispatcher.onRequest = (asked) => {
    if (asked.code === 1) dispatcher.refuse(asked, 'LIMIT_EXCEEDED', { retryable: true });
    else dispatcher.accept(asked);
  };
  const refused = assert.rejects(client.request(1), { code: 'LIMIT_EXCEEDED', retryable: true });
  const ended = assert.rejects(client.request(2), { code: 'EXITED', exit: 2, message: 'failed' });
  const completed = assert.rejects(client.request(3), { code: 'COMPLETED' });
  await world.settle();
  dispatcher.end(2, 'EXITED', 'failed', 2);
  dispatcher.end(3, 'COMPLETED');
  await world.settle();
  await Promise.all([refused, ended, completed]);
  const late = assert.rejects(client.request(4, { timeoutMs: 2000 }), { code: 'TIMEOUT', retryable: true });
  const patient = client.request(4, { timeoutMs: 9000 });
  await world.advance(2001);
  await late;
  assert.deepEqual(dispatcher.cancelled, [], 'somebody else still waits');
  dispatcher.respond(4, 1, 'at last', { flags: Flag.FINAL });
  await world.settle();
  assert.equal((await patient).text(), 'at last');
  const alone = assert.rejects(client.request(5, { timeoutMs: 100 }), { code: 'TIMEOUT' });
  await world.advance(101);
  await alone;
  assert.deepEqual(dispatcher.cancelled, [5]);
  assert.deepEqual(client.counts, NOTHING);
  assert.deepEqual(logged, []);
});

test('a request times out after 30 s by itself, also while there is no session', async () => {
  const { client, world, network } = await setUp();
  network.cut(ADDRESS);
  await world.settle();
  const answer = assert.rejects(client.request(1), { code: 'TIMEOUT' });
  await world.advance(29_999);
  assert.equal(client.counts.calls, 1);
  await world.advance(2);
  await answer;
  assert.deepEqual(client.counts, NOTHING);
});

test('a request gives up with its signal', async () => {
  const { client, dispatcher, world } = await setUp();
  const controller = new AbortController();
  const answer = client.request(1, { signal: controller.signal });
  await world.settle();
  controller.abort('enough');
  await assert.rejects(answer, { code: 'ABORTED', cause: 'enough' });
  await world.settle();
  assert.deepEqual(dispatcher.cancelled, [1]);
  await assert.rejects(client.request(1, { signal: AbortSignal.abort() }), { code: 'ABORTED' });
});

test('bad options of a request reject', async () => {
  const { client } = await setUp();
  for (const timeoutMs of [0, -1, 2 ** 31, Number.NaN, Number.POSITIVE_INFINITY, '1' as never]) {
    await assert.rejects(client.request(1, { timeoutMs }), { code: 'OPTION_INVALID' });
  }
  await assert.rejects(client.request(-1), { code: 'OPTION_INVALID' });
  await assert.rejects(client.request(1, { params: () => {} }), { code: 'PARAMS_INVALID' });
  assert.deepEqual(client.counts, NOTHING);
});

test('a request that is under way when the session is lost is asked again', async () => {
  const { client, dispatcher, world, reconnect } = await setUp();
  const answer = client.request(1);
  await world.settle();
  await reconnect();
  assert.equal(dispatcher.asked.length, 2);
  dispatcher.respond(1, 1, 'x', { flags: Flag.FINAL });
  await world.settle();
  assert.equal((await answer).text(), 'x');
});

// ---- application messages ----

test('application messages go both ways', async () => {
  const { client, dispatcher, world, connection } = await setUp();
  const got: Message[] = [];
  const off = client.on('application', (message) => got.push(message));
  await client.send(130, 55, { hello: 1 }, { key: 'k' });
  await world.settle();
  const [sent] = dispatcher.application as [Uint8Array];
  assert.deepEqual([sent[OFFSET.type], readU32(sent, OFFSET.code)], [130, 55]);
  assert.equal(new TextDecoder().decode(sent.subarray(bodyStart(sent, 0))), '{"hello":1}');
  const message = encodeMessage({ type: 200, code: 56 }, 'hi', { tag: 't' });
  dispatcher.session!.sendData(message, 0, message.length, 1);
  await world.settle();
  assert.deepEqual([got[0]!.type, got[0]!.code, got[0]!.text(), got[0]!.tag], [200, 56, 'hi', 't']);
  off();
  dispatcher.session!.sendData(message, 0, message.length, 1);
  await world.settle();
  assert.deepEqual([got.length, connection.session!.state], [1, 'open']);
});

test('an application message is given back when its listeners are done, whatever they did', async () => {
  const { client, dispatcher, world } = await setUp({ limits: { receiveWindow: 100 } });
  const errors: string[] = [];
  let open = () => {};
  client.on('application', () => new Promise<void>((_, reject) => (open = () => reject(new Error('no')))));
  client.on('error', ({ code }) => errors.push(code));
  const message = encodeMessage({ type: 200 }, 'x'.repeat(68));
  dispatcher.session!.sendData(message, 0, message.length, 1);
  await world.settle();
  assert.equal(dispatcher.session!.credit, 0);
  open();
  await world.settle();
  assert.equal(dispatcher.session!.credit, 100);
  assert.deepEqual(errors, ['HANDLER_FAILED']);
});

test('send waits for credit, in order, and gives up with its signal', async () => {
  const { client, dispatcher, world } = await setUp({ dispatcherLimits: { receiveWindow: 100 } });
  dispatcher.consuming = false;
  const controller = new AbortController();
  const { signal } = controller;
  const sends = [1, 2, 3, 4].map((code) => client.send(128, code, 'x'.repeat(68), {}, code === 3 ? { signal } : {}));
  await sends[0];
  await world.settle();
  assert.equal(dispatcher.application.length, 1);
  assert.equal(client.counts.sends, 3);
  controller.abort();
  await assert.rejects(sends[2]!, { code: 'ABORTED' });
  dispatcher.consuming = true;
  dispatcher.session!.consume(100);
  await world.settle();
  await Promise.all([sends[1], sends[3]]);
  const codes = dispatcher.application.map((message) => readU32(message, OFFSET.code));
  assert.deepEqual(codes, [1, 2, 4]);
});

test('a send that cannot be is a coded error', async () => {
  const { client, dispatcher, world, network } = await setUp({
    dispatcherLimits: { receiveWindow: 40, maxMessage: 2000 },
  });
  for (const type of [0, 2, 127, 256, 130.5, Number.NaN]) {
    await assert.rejects(client.send(type, 1), { code: 'OPTION_INVALID' });
  }
  await assert.rejects(client.send(128, -1), { code: 'OPTION_INVALID' });
  await assert.rejects(client.send(128, 1, undefined, { key: 5 as never }), { code: 'META_INVALID' });
  await assert.rejects(client.send(128, 1, 10n), { code: 'BODY_INVALID' });
  await assert.rejects(client.send(128, 1, 'x'.repeat(2000)), { code: 'MESSAGE_TOO_LARGE' });
  await assert.rejects(client.send(128, 1, '', {}, { signal: AbortSignal.abort() }), { code: 'ABORTED' });
  dispatcher.consuming = false;
  await client.send(128, 1, 'x'.repeat(2000 - HEADER_BYTES));
  const waiting = Array.from({ length: 1024 }, () => assert.rejects(client.send(128, 1), { code: 'DISCONNECTED' }));
  await assert.rejects(client.send(128, 1), { code: 'LIMIT_EXCEEDED', retryable: true });
  network.cut(ADDRESS);
  await world.settle();
  await Promise.all(waiting);
  await assert.rejects(client.send(128, 1), { code: 'DISCONNECTED', retryable: true });
  assert.deepEqual(client.counts, NOTHING);
});

// ---- closing ----

/** Everything a client can be asked for. */
function callAll(client: Client): Promise<(string | undefined)[]> {
  const calls: (() => unknown)[] = [
    () => client.subscribe(1),
    () => client.run({ code: 1, onMessage() {} }),
    () => client.request(1),
    () => client.send(128, 1),
  ];
  return Promise.all(
    calls.map(async (call) => {
      try {
        await call();
        return undefined;
      } catch (error) {
        return error instanceof TrunklineError ? error.code : String(error);
      }
    }),
  );
}
const allClosed = ['CLOSED', 'CLOSED', 'CLOSED', 'CLOSED'];

test('F26, F19: close rejects every pending call once, and every later one with CLOSED', async () => {
  const { client, dispatcher, world } = await setUp({
    accepting: false,
    dispatcherLimits: { receiveWindow: 40 },
  });
  dispatcher.consuming = false;
  const subscription = client.subscribe(100);
  const ends: string[] = [];
  subscription.on('end', ({ code }) => ends.push(code));
  const next = subscription[Symbol.asyncIterator]().next();
  const states: string[] = [];
  client.on('state', (state, reason) => states.push(`${state} ${reason?.code}`));
  await client.send(128, 1, 'x'.repeat(50));
  const rejected = [subscription.accepted(), client.request(5), client.send(128, 2)].map((call) =>
    assert.rejects(call, { code: 'CLOSED' }),
  );
  await world.settle();
  const closed = client.close();
  assert.equal(client.close(), closed);
  await Promise.all([closed, ...rejected]);
  assert.deepEqual(await next, { done: true, value: undefined });
  assert.deepEqual([ends, states, client.state], [['CLOSED'], ['closed CLOSED'], 'closed']);
  assert.deepEqual(await callAll(client), allClosed);
  assert.deepEqual(client.counts, NOTHING);
  await subscription.unsubscribe();
  await client.close();
  await world.settle();
  assert.deepEqual([dispatcher.session, dispatcher.cancelled], [undefined, []]);
});

test('F27: close resolves in every state, and no timer is left', async () => {
  const never = await setUp({ offline: true });
  await never.client.close();
  await never.client.close();
  const connecting = await setUp();
  const dead = await setUp();
  dead.network.cut(ADDRESS);
  await dead.world.settle();
  dead.client.subscribe(1);
  for (const { client, connection } of [connecting, dead]) {
    await Promise.all([client.close(), client.close()]);
    assert.equal(connection.state, 'closed');
  }
  for (const { world, dispatcher } of [never, connecting, dead]) {
    await world.advance(60_000);
    dispatcher.close();
    assert.equal(world.timers.size, 0);
  }
});

test('await using closes the client', async () => {
  const setup = await setUp();
  {
    await using client = setup.client;
    client.subscribe(1);
    await setup.world.settle();
  }
  await setup.world.settle();
  assert.deepEqual([setup.client.state, setup.dispatcher.session], ['closed', undefined]);
});

test('F19: an ejected client says why, calls on it are CLOSED, and a new one works', async () => {
  const { client, dispatcher, world, network, connection } = await setUp();
  const subscription = client.subscribe(100);
  const states: string[] = [];
  client.on('state', (state, reason) => states.push(`${state} ${reason?.code}`));
  const loop = assert.rejects(subscription[Symbol.asyncIterator]().next(), { code: 'KICKED' });
  const answer = assert.rejects(client.request(5), { code: 'KICKED' });
  await world.settle();
  dispatcher.session!.close('KICKED', 'by an operator');
  await world.settle();
  await Promise.all([loop, answer]);
  assert.deepEqual(states, ['closed KICKED']);
  assert.deepEqual(await callAll(client), allClosed);
  assert.throws(
    () => client.subscribe(1),
    (error: TrunklineError) => (error.cause as TrunklineError).code === 'KICKED',
  );
  await client.close();
  assert.equal(connection.state, 'closed');
  assert.throws(() => new Client(connection), { code: 'CLOSED' });
  const again = new Client(
    new Connection({ context: world.context(), transport: network, addresses: [ADDRESS], log: silentLog }),
  );
  const other = again.subscribe(100);
  await world.settle();
  await other.accepted();
  await again.close();
});

test('close waits for the transport, also after the peer ended the session for good', async () => {
  const { dispatcher, world, network } = await setUp();
  let disposed = false;
  let dispose = () => {};
  const disposing = new Promise<void>((resolve) => {
    dispose = resolve;
  });
  const connection = new Connection({
    context: world.context(),
    transport: network,
    addresses: [ADDRESS],
    log: silentLog,
    dispose: () => disposing,
  });
  const client = new Client(connection);
  await world.settle();
  dispatcher.session!.close('KICKED');
  await world.settle();
  const closing = client.close().then(() => {
    disposed = true;
  });
  await world.settle();
  assert.deepEqual([client.state, disposed], ['closed', false]);
  dispose();
  await closing;
});

test('refused credentials close the client for good', async () => {
  const { client, connection } = await setUp({ authenticate: () => new TrunklineError('UNAUTHENTICATED') });
  assert.equal(client.state, 'closed');
  await assert.rejects(connection.ready(), { code: 'UNAUTHENTICATED' });
});

test('rule 13: a client on a shared connection leaves it to the other role, and takes back what it asked for', async () => {
  const { client, dispatcher, world, connection } = await setUp();
  const controls: number[] = [];
  const role: Role = {
    onOpen() {},
    onControl(_session, type) {
      controls.push(type);
      return true;
    },
    onData: () => false,
    onCredit() {},
    onLost() {},
  };
  connection.addRole(role);
  assert.throws(() => new Client(connection), { code: 'HANDLER_EXISTS' });
  client.subscribe(100);
  client.subscribe(101);
  await world.settle();
  // a refusal of something that the client did not ask for is the other role's
  dispatcher.refuse({ ...dispatcher.asked[0]!, request: { ...dispatcher.asked[0]!.request, request: 99 } }, 'REFUSED');
  await world.settle();
  assert.equal(controls.length, 1);
  await client.close();
  await world.settle();
  assert.deepEqual(dispatcher.cancelled, [1, 2]);
  assert.equal(connection.state, 'open');
  const again = new Client(connection);
  assert.equal(again.state, 'connected');
  again.subscribe(100);
  await world.settle();
  assert.equal(dispatcher.asked.length, 3);
  await again.close();
  await connection.removeRole(role);
  assert.equal(connection.state, 'closed');
});

test('payloads that cannot be decoded are counted and disturb nothing', async () => {
  const { client, dispatcher, world, connection } = await setUp();
  const subscription = client.subscribe(100);
  await world.settle();
  const garbage = Uint8Array.of(0xff, 0xff, 0xff);
  for (const type of [32, 33, 34, 35, 36]) dispatcher.session!.send({ type, line: 1 }, garbage);
  await world.settle();
  assert.equal(connection.session!.faults.payload, 5);
  assert.equal(subscription.state, 'live');
});
