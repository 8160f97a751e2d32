import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type DataMessage, type ErrorCode, payload, type Role, TrunklineError, Type } from '@trunkline/proto';
import { Provider, type Reply } from '@trunkline/publisher/core';
import fc from 'fast-check';
import { MemoryNetwork, MemoryWorld } from '../support/memory-link.js';
import { ADDRESS, bench, dial, read, ScriptedDispatcher } from './scripted-dispatcher.js';

const code = (expected: ErrorCode) => (error: unknown) => error instanceof TrunklineError && error.code === expected;
const nothing = () => {};

function watch(provider: Provider): string[] {
  const states: string[] = [];
  provider.on('state', (state) => states.push(state));
  return states;
}

test('codes and ranges are offered at once, after each reconnect, and withdrawn', async () => {
  const { world, network, dispatcher, provider } = await bench();
  const provided = provider.provide(1, nothing);
  provider.provide({ from: 10, to: 20 }, nothing);
  await world.settle();
  const offers = dispatcher.of('OFFER').map((message) => ({ ...read(payload.offer, message) }));
  assert.deepEqual(offers, [
    { codes: [1], ranges: [] },
    { codes: [], ranges: [10, 20] },
  ]);
  dispatcher.take();
  const states = watch(provider);
  network.cut(ADDRESS);
  await world.settle();
  network.restore(ADDRESS);
  await world.advance(10_000);
  assert.deepEqual(states, ['disconnected', 'connected']);
  assert.deepEqual({ ...read(payload.offer, dispatcher.of('OFFER')[0]) }, { codes: [1], ranges: [10, 20] });
  await provided.withdraw();
  await provided.withdraw();
  await world.settle();
  assert.equal(dispatcher.of('WITHDRAW').length, 1);
  assert.deepEqual(read(payload.offer, dispatcher.of('WITHDRAW')[0]).codes, [1]);
});

test('a thousand codes and more are offered in parts', async () => {
  const { world, network, dispatcher, provider } = await bench();
  for (let service = 1; service <= 2500; service++) provider.provide(service, nothing);
  network.cut(ADDRESS);
  await world.settle();
  dispatcher.take();
  network.restore(ADDRESS);
  await world.advance(10_000);
  const sizes = dispatcher.of('OFFER').map((message) => read(payload.offer, message).codes.length);
  assert.deepEqual(sizes, [1000, 1000, 500]);
});

test('withdraw ends what the handler has running, and only that', async () => {
  const { world, dispatcher, provider } = await bench();
  const stopped: number[] = [];
  const handler =
    ({ code: service }: { code: number }) =>
    () =>
      stopped.push(service);
  const first = provider.provide(1, handler);
  provider.provide({ from: 1, to: 5 }, handler);
  for (const [line, service] of [1, 2, 1].entries()) dispatcher.request(service, line);
  await world.settle();
  dispatcher.take();
  await first.withdraw();
  assert.deepEqual([stopped, provider.subscriptions, provider.subscriptionsOf(2)], [[1, 1], 1, 1]);
  await world.settle();
  const refused = read(payload.refused, dispatcher.of('REFUSED')[0]);
  assert.deepEqual([refused.code, refused.retryable], ['NOT_PROVIDED', true]);
  assert.deepEqual(dispatcher.take(), ['WITHDRAW 0/0/0', 'REFUSED 1/0/1', 'REFUSED 1/2/1']);
  dispatcher.request(1, 0);
  await world.settle();
  assert.deepEqual(dispatcher.take(), ['ACCEPTED 1/0/1'], 'the range answers now, to the same generation too');
});

test('the narrowest range wins; codes that have a handler, or are none, are refused', () => {
  const provider = new Provider();
  const one = provider.provide(7, nothing);
  provider.provide({ from: 5, to: 9 }, nothing);
  assert.throws(() => provider.provide(7, nothing), code('HANDLER_EXISTS'));
  assert.throws(() => provider.provide({ from: 7, to: 7 }, nothing), code('HANDLER_EXISTS'));
  assert.throws(() => provider.provide({ from: 5, to: 9 }, nothing), code('HANDLER_EXISTS'));
  assert.throws(() => provider.provide({ from: 8, to: 12 }, nothing), code('HANDLER_EXISTS'));
  provider.provide({ from: 1, to: 0xffffffff }, nothing);
  one.withdraw();
  provider.provide(7, nothing);
  for (const codes of [0, -1, 1.5, 2 ** 32, Number.NaN, '7' as never, { from: 3, to: 2 }]) {
    assert.throws(() => provider.provide(codes, nothing), code('OPTION_INVALID'));
  }
  assert.throws(() => provider.provide(8, undefined as never), code('OPTION_INVALID'));
});

test('which handler answers a code is what a plain search finds', async () => {
  const { world, dispatcher, provider } = await bench();
  const taken: { from: number; to: number }[] = [];
  const served = new Map<number, string>();
  const range = fc
    .tuple(fc.integer({ min: 1, max: 30 }), fc.nat(10))
    .map(([from, size]) => ({ from, to: from + size }));
  for (const { from, to } of fc.sample(range, { numRuns: 60, seed: 7 })) {
    try {
      provider.provide({ from, to }, ({ code: service }) => void served.set(service, `${from}-${to}`));
      taken.push({ from, to });
    } catch (error) {
      assert.equal((error as TrunklineError).code, 'HANDLER_EXISTS');
    }
  }
  for (let service = 1; service <= 41; service++) dispatcher.request(service, service);
  await world.settle();
  for (let service = 1; service <= 41; service++) {
    const holding = taken.filter(({ from, to }) => from <= service && service <= to);
    const narrowest = holding.sort((left, right) => left.to - left.from - (right.to - right.from))[0];
    assert.equal(served.get(service), narrowest && `${narrowest.from}-${narrowest.to}`);
  }
});

test('everything ends with its session, and the next session asks again (rules 6, 11, 12)', async () => {
  const { world, network, dispatcher, provider } = await bench();
  const reasons: string[] = [];
  let started = 0;
  provider.provide(1, ({ signal }) => {
    started++;
    signal.addEventListener('abort', () => reasons.push(signal.reason.code));
    return async () => {};
  });
  for (const line of [1, 2, 3]) dispatcher.request(1, line);
  await world.settle();
  network.cut(ADDRESS);
  await world.settle();
  assert.deepEqual(reasons, Array(3).fill('SESSION_LOST'));
  assert.equal(provider.subscriptions, 0);
  network.restore(ADDRESS);
  await world.advance(10_000);
  dispatcher.request(1, 1);
  await world.settle();
  assert.deepEqual([started, provider.subscriptions], [4, 1]);
});

test('a dispatcher that is not heard any more is a session that ends; the provider comes back by itself', async () => {
  const { world, network, dispatcher, provider } = await bench();
  const states = watch(provider);
  provider.provide(1, nothing);
  dispatcher.request(1, 1);
  await world.settle();
  for (const link of network.links(ADDRESS)) link.peer!.deaf = true;
  await world.advance(7000);
  assert.deepEqual([states[0], provider.subscriptions], ['disconnected', 0]);
  for (const link of network.links(ADDRESS)) link.peer!.deaf = false;
  await world.advance(10_000);
  assert.equal(provider.state, 'connected');
});

test('close resolves in every state, any number of times (F27), and leaves no timer (F28)', async () => {
  const world = new MemoryWorld();
  const network = new MemoryNetwork(world);
  const made = () => {
    const provider = new Provider();
    const connection = dial(world, network);
    provider.attach(connection);
    return { provider, connection };
  };
  const never = new Provider();
  await Promise.all([never.close(), never.close()]);
  const connecting = made().provider;
  await connecting.close();
  await connecting.close();
  const dispatcher = new ScriptedDispatcher(world);
  const listener = await network.listen(ADDRESS, dispatcher.host);
  const connected = made().provider;
  await world.settle();
  let stopped = 0;
  connected.provide(1, () => () => stopped++);
  dispatcher.request(1, 1);
  await world.settle();
  connected.on('state', () => connected.close());
  await Promise.all([connected.close(), connected.close()]);
  await world.settle();
  assert.deepEqual([stopped, connected.subscriptions, connected.state], [1, 0, 'closed']);
  assert.equal(dispatcher.of('WITHDRAW').length, 1);
  assert.equal(dispatcher.host.size, 0);
  const orphaned = made().provider;
  await world.settle();
  await listener.close();
  await world.settle();
  await orphaned.close();
  await world.settle();
  assert.equal(world.timers.size, 0);
  assert.throws(() => orphaned.provide(1, nothing), code('CLOSED'));
  assert.equal(orphaned.send(200, 1), false);
});

test('close inside of a handler, a cleanup and a listener', async () => {
  const { world, dispatcher, provider } = await bench();
  provider.provide(1, async (subscription) => {
    await provider.close();
    assert.equal(subscription.over, true);
    return () => provider.close();
  });
  dispatcher.request(1, 1);
  dispatcher.request(1, 2);
  await world.settle();
  assert.equal(provider.state, 'closed');
  assert.equal(world.timers.size, 0);
});

test('a refusal that is final closes the provider and says why; one that is not does not', async () => {
  const { world, dispatcher, provider } = await bench();
  const errors: string[] = [];
  provider.on('error', (error) => errors.push(error.code));
  dispatcher.session!.close('KICKED', 'by an operator', true);
  await world.advance(10_000);
  assert.equal(provider.state, 'connected');
  dispatcher.session!.close('KICKED', 'by an operator');
  await world.settle();
  assert.deepEqual([provider.state, provider.closedBy?.code, errors], ['closed', 'KICKED', ['KICKED']]);
  await provider.close();
  assert.equal(world.timers.size, 0);
});

test('an offer that is refused is an error event', async () => {
  const { world, dispatcher, provider } = await bench();
  const errors: string[] = [];
  provider.on('error', (error) => errors.push(`${error.code} ${error.message}`));
  dispatcher.send({ type: Type.REFUSED, code: 1 }, payload.refused.encode({ code: 'FORBIDDEN', message: 'not 1' }));
  await world.settle();
  assert.deepEqual(errors, ['FORBIDDEN not 1']);
});

test('a connection is shared with another role, which keeps it (rule 13)', async () => {
  const { world, dispatcher, connection, provider } = await bench();
  const role: Role = {
    onOpen: nothing,
    onControl: (_session, type) => type === Type.STATUS,
    onData: () => false,
    onCredit: nothing,
    onLost: nothing,
  };
  connection.addRole(role);
  provider.provide(1, nothing);
  dispatcher.send({ type: Type.STATUS, line: 4 });
  dispatcher.request(1, 1);
  await world.settle();
  assert.deepEqual(dispatcher.take(), ['ACCEPTED 1/1/1']);
  assert.throws(() => new Provider().attach(connection), code('HANDLER_EXISTS'));
  await provider.close();
  await world.settle();
  assert.equal(connection.state, 'open');
  assert.deepEqual(dispatcher.take(), ['WITHDRAW 0/0/0']);
  new Provider().attach(connection);
  await connection.close();
  assert.throws(() => new Provider().attach(connection), code('CLOSED'));
});

test('a bound provider serves every dispatcher that dials it', async () => {
  const world = new MemoryWorld();
  const network = new MemoryNetwork(world);
  const provider = new Provider();
  const states = watch(provider);
  const host = provider.host(world.context(), { maxSessions: 2 });
  await network.listen(ADDRESS, host);
  let started = 0;
  provider.provide(1, () => void started++);
  const sessions = [dial(world, network), dial(world, network), dial(world, network)];
  await world.settle();
  assert.deepEqual(
    sessions.map(({ state }) => state),
    ['open', 'open', 'connecting'],
  );
  for (const { session } of sessions.slice(0, 2)) {
    session!.send({ type: Type.REQUEST, code: 1, line: 1, generation: 1 });
    session!.send({ type: Type.RESPONSE, code: 1, line: 1 });
    session!.send({ type: Type.STATUS, code: 1, line: 1 });
  }
  await world.settle();
  assert.deepEqual([started, provider.subscriptions], [2, 2]);
  for (const session of host.all()) assert.deepEqual({ ...session.faults }, { unexpected: 2 });
  await sessions[0]!.close();
  await world.settle();
  assert.equal(provider.subscriptions, 1);
  await Promise.all(sessions.map((connection) => connection.close()));
  await world.settle();
  assert.deepEqual([provider.subscriptions, states], [0, ['connected', 'disconnected']]);
  await provider.close();
  assert.equal(world.timers.size, 0);
});

test('messages of the application go both ways, and count as consumed when the listeners are done', async () => {
  const { world, dispatcher, provider } = await bench();
  assert.equal(provider.send(200, 9, { up: 1 }, { key: 'k' }), true);
  for (const type of [2, 127, 256, 200.5]) assert.throws(() => provider.send(type, 1), code('OPTION_INVALID'));
  assert.throws(() => provider.send(200, -1), code('OPTION_INVALID'));
  await world.settle();
  assert.deepEqual(dispatcher.take(), ['APPLICATION(200) 9/0/0']);
  const session = provider.connection!.session!;
  const consumed: number[] = [];
  const { consume } = session;
  session.consume = (bytes) => {
    consumed.push(bytes);
    consume.call(session, bytes);
  };
  dispatcher.send({ type: 130, code: 4, line: 8 });
  await world.settle();
  assert.deepEqual(consumed.splice(0), [32], 'nobody listens, so the connection consumes it');
  let finish: () => void = nothing;
  provider.on('application', (message: DataMessage, reply: Reply) => {
    reply([message.type, message.code]);
    return new Promise<void>((resolve) => {
      finish = resolve;
    });
  });
  dispatcher.send({ type: 130, code: 4, line: 8 });
  await world.settle();
  assert.deepEqual(consumed, []);
  assert.deepEqual(dispatcher.of('APPLICATION(130)')[0]!.json(), [130, 4]);
  assert.deepEqual(dispatcher.take(), ['APPLICATION(130) 4/8/0']);
  finish();
  await world.settle();
  assert.deepEqual(consumed, [32]);
});

test('pending calls reject once when the link breaks, and nothing is left unhandled (F26)', async () => {
  const unhandled: unknown[] = [];
  const onUnhandled = (reason: unknown) => unhandled.push(reason);
  process.on('unhandledRejection', onUnhandled);
  const { world, network, dispatcher, provider } = await bench({ receiveWindow: 40 });
  dispatcher.consuming = false;
  let rejected = 0;
  provider.provide(1, (subscription) => {
    subscription.respond(new Uint8Array(100));
    subscription.drained();
    subscription.probe();
    subscription.drained().catch(() => rejected++);
    return async () => {
      throw subscription.signal.reason;
    };
  });
  for (let round = 0; round < 20; round++) {
    dispatcher.request(1, 1);
    await world.settle();
    if (round % 2 === 0) network.cut(ADDRESS);
    else dispatcher.session?.lost('forgotten');
    await world.settle();
    network.restore(ADDRESS);
    await world.advance(20_000);
  }
  await provider.close();
  await world.settle();
  process.off('unhandledRejection', onUnhandled);
  assert.deepEqual([rejected, unhandled], [20, []]);
});
