import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LONGEST_TURN, OFFSET, payload, readU32, singleMessage, Timer, Turns, Type } from '@trunkline/proto';
import { MemoryWorld } from '../support/memory-link.js';
import { batchOf, Pair, response } from './session-ends.js';

/** Handling a message takes `cost` ms of the virtual clock. */
function dear(pair: Pair, cost: number): Pair {
  pair.on.onData = (_session, _batch, _start, _end, count) => {
    pair.world.time += cost * count;
  };
  return pair;
}

const many = (count: number, line = 1) => batchOf(...Array.from({ length: count }, () => response('x', false, line)));

/** Messages of the runs that were told, in all. */
const messages = (pair: Pair) =>
  pair.told.reduce((sum, told) => sum + (told.startsWith('data ') ? Number(told.slice(5)) : 0), 0);

/** Whoever wants a turn at every ms: how long it had to wait at most, ms. */
function watch(world: MemoryWorld): { longest: number; turns: number; stop(): void } {
  const seen = { longest: 0, turns: 0, stop: () => world.timers.stop(timer) };
  let last = world.time;
  const timer = new Timer({
    onTimer: () => {
      seen.longest = Math.max(seen.longest, world.time - last);
      seen.turns++;
      last = world.time;
      world.timers.start(timer, 1);
    },
  });
  world.timers.start(timer, 1);
  return seen;
}

test('a batch that is dear to handle is handled in parts, and timers have their turn between', async () => {
  const pair = dear(await new Pair(new MemoryWorld(), { heartbeat: 100 }).open({ heartbeatMs: 10_000 }), 2);
  const { world, session, peer } = pair;
  peer.link.send(many(2500));
  await world.settle();
  assert.ok(session.behind);
  assert.ok(messages(pair) < 50, 'the first part, whose cost was not known');
  const seen = watch(world);
  await world.advance(4000);
  assert.ok(seen.longest <= LONGEST_TURN * 1.5 + 2, `a turn of ${seen.longest} ms`);
  assert.ok(messages(pair) > 1500, 'nothing is lost of the time');
  const beats = peer.payloads(Type.HEARTBEAT, payload.heartbeat);
  assert.ok(beats.length > 30, `${beats.length} heartbeats`);
  await world.advance(2000);
  seen.stop();
  assert.equal(messages(pair), 2500);
  assert.equal(session.messagesIn, 2500);
  assert.ok(!session.behind);
  assert.equal(world.timers.size, 2, 'heartbeat and liveness');
});

test('a single message is the least part', async () => {
  const pair = dear(await new Pair().open({ heartbeatMs: 100_000 }), 50);
  pair.peer.link.send(many(40));
  await pair.world.settle();
  const seen = watch(pair.world);
  await pair.world.advance(5000);
  seen.stop();
  assert.equal(messages(pair), 40);
  assert.ok(seen.longest <= 52, `a turn of ${seen.longest} ms`);
});

test('what is cheap stays in runs as long as they come; one of another line is cut once', async () => {
  const pair = await new Pair().open();
  const { world, peer, told } = pair;
  for (let count = 0; count < 2; count++) peer.link.send(many(2500));
  await world.settle();
  told.length = 0;
  peer.link.send(many(2500));
  await world.settle();
  assert.deepEqual(told.splice(0), ['data 2500']);
  peer.link.send(batchOf(many(1000, 2), many(1000, 1)));
  await world.settle();
  assert.deepEqual(told, ['data 32', 'data 968', 'data 32', 'data 968']);
});

test('a line that is dear does not profit from one that is cheap', async () => {
  const pair = await new Pair(new MemoryWorld(), { heartbeat: 1000 }).open({ heartbeatMs: 100_000 });
  const { world, peer } = pair;
  pair.on.onData = (_session, batch, start, _end, count) => {
    if (readU32(batch, start + OFFSET.line) === 2) world.time += 2 * count;
  };
  for (let count = 0; count < 3; count++) peer.link.send(many(2500));
  peer.link.send(batchOf(many(500, 2), many(500, 1), many(500, 2)));
  const seen = watch(world);
  await world.advance(4000);
  seen.stop();
  assert.equal(messages(pair), 9000);
  assert.ok(seen.longest <= 32 * 2 + LONGEST_TURN, `a turn of ${seen.longest} ms`);
});

test('later batches wait behind, control among them, and the heartbeat counts what came before it (M-26)', async () => {
  const pair = dear(await new Pair().open({ heartbeatMs: 100_000, credit: 0 }), 5);
  const { world, session, peer, told } = pair;
  peer.link.send(many(100));
  peer.send({ type: Type.OFFER });
  peer.link.send(new Uint8Array(40));
  pair.credit(500);
  pair.beat(4);
  peer.link.send(many(3, 2));
  peer.send({ type: Type.WITHDRAW });
  await world.settle();
  const { lastHeard } = session;
  assert.deepEqual(session.faults, { length: 1 });
  assert.equal(session.credit, 0);
  await world.advance(1000);
  assert.equal(session.lastHeard, lastHeard, 'when it came, not when it was handled');
  assert.equal(session.state, 'open');
  assert.deepEqual(
    told.filter((each) => !each.startsWith('data')),
    ['OFFER', 'credit 500', 'WITHDRAW'],
  );
  assert.equal(told.at(-1), 'WITHDRAW');
  assert.equal(messages(pair), 103);
  peer.link.send(many(100));
  pair.beat(9);
  await world.advance(1000);
  assert.equal(pair.closed?.code, 'SESSION_LOST', 'a wrong count is found behind what waited');
  assert.equal(messages(pair), 203);
});

test('a peer is not lost while what it sent waits, for as long as it is heard (M-28)', async () => {
  const pair = dear(await new Pair(new MemoryWorld(), { heartbeat: 100_000 }).open({ heartbeatMs: 100 }), 5);
  const { world, peer } = pair;
  peer.link.send(many(1000));
  for (let count = 1; count <= 6; count++) {
    pair.beat(count);
    await world.advance(200);
  }
  assert.equal(pair.session.state, 'open');
  assert.ok(pair.session.behind);
  await world.advance(400);
  assert.equal(pair.closed?.code, 'SESSION_LOST');
  const handled = messages(pair);
  assert.ok(handled < 1000);
  assert.equal(world.timers.size, 0);
  await world.advance(1000);
  assert.equal(messages(pair), handled, 'what waits is dropped with the session');
});

test('credit is granted as messages are handled, so that a window never stays closed', async () => {
  const pair = dear(await new Pair(new MemoryWorld(), { receiveWindow: 4000 }).open({ heartbeatMs: 100_000 }), 5);
  const { world, session, peer } = pair;
  pair.on.onData = (_session, _batch, start, end, count) => {
    world.time += 5 * count;
    session.consume(end - start);
  };
  const one = response('x').length;
  let sent = 0;
  let limit = 4000;
  for (let step = 0; step < 200; step++) {
    const fits = Math.floor((limit - sent) / one);
    if (fits > 0) peer.link.send(many(fits));
    sent += fits * one;
    await world.advance(20);
    for (const granted of peer.payloads(Type.CREDIT, payload.credit)) limit = granted.limit;
  }
  assert.ok(messages(pair) > 500, `${messages(pair)} messages`);
  assert.equal(session.state, 'open');
});

test('a link that is down takes what waits with it, and leaves nothing', async () => {
  const pair = dear(await new Pair().open({ heartbeatMs: 100_000 }), 5);
  pair.peer.link.send(many(100));
  pair.peer.send({ type: Type.OFFER });
  await pair.world.settle();
  const handled = messages(pair);
  pair.peer.link.cut();
  await pair.world.advance(1000);
  assert.equal(pair.closed?.code, 'SESSION_LOST');
  assert.equal(messages(pair), handled);
  assert.equal(pair.told.at(-1), 'closed');
  assert.equal(pair.world.timers.size, 0);
  assert.equal(pair.context.turns.size, 0);
  assert.ok(!pair.session.behind);
});

test('a peer that said BYE and left is heard to the end (M-31)', async () => {
  const pair = dear(await new Pair(new MemoryWorld(), { heartbeat: 100_000 }).open({ heartbeatMs: 20 }), 5);
  pair.peer.link.send(many(100));
  pair.peer.send({ type: Type.BYE }, payload.bye.encode({ code: 'KICKED', message: 'why', retryable: false }));
  await pair.world.settle();
  pair.peer.link.cut();
  await pair.world.advance(200);
  assert.equal(pair.session.state, 'open', 'neither the link nor the silence ends it');
  await pair.world.advance(1000);
  assert.equal(messages(pair), 100);
  assert.deepEqual(pair.closed, { code: 'KICKED', retryable: false, message: 'why' });
  assert.equal(pair.world.timers.size, 0);
});

test('a session that is closed while something waits drops it', async () => {
  for (const how of ['from outside', 'by a handler'] as const) {
    const pair = dear(await new Pair().open({ heartbeatMs: 100_000 }), 5);
    const { world, session, peer, told } = pair;
    const { onData } = pair.on;
    let parts = 0;
    pair.on.onData = (...args) => {
      onData?.(...args);
      if (++parts === 3 && how === 'by a handler') session.close();
    };
    peer.link.send(many(100));
    peer.link.send(many(100));
    await world.settle();
    if (how === 'from outside') session.close();
    await world.advance(2000);
    assert.equal(told.at(-1), 'closed');
    assert.ok(messages(pair) < 100);
    assert.deepEqual(peer.take().at(-1), 'BYE');
    assert.equal(world.timers.size, 0);
    assert.equal(pair.context.turns.size, 0);
  }
});

test('a fault in a later part ends the session alone', async () => {
  const faults: unknown[] = [];
  const world = new MemoryWorld();
  const turns = new Turns(world.clock, world.timers);
  const more = { onFault: (error: unknown) => faults.push(error), turns };
  const pair = await new Pair(world, {}, more).open({ heartbeatMs: 100_000 });
  const other = dear(await new Pair(world, {}, more).open({ heartbeatMs: 100_000 }), 5);
  let parts = 0;
  pair.on.onData = (_session, _batch, _start, _end, count) => {
    world.time += 5 * count;
    if (++parts === 4) throw new Error('a bug');
  };
  for (const { peer } of [pair, other]) peer.link.send(many(100));
  await world.advance(2000);
  assert.deepEqual(
    faults.map((error) => (error as Error).message),
    ['a bug'],
  );
  assert.deepEqual(pair.peer.take().at(-1), 'RESET');
  assert.equal(pair.closed?.code, 'SESSION_LOST');
  assert.equal(messages(other), 100);
  assert.equal(turns.size, 0);
});

test('many sessions with something dear share a turn, and one without goes on', async () => {
  const world = new MemoryWorld();
  const turns = new Turns(world.clock, world.timers);
  const pairs: Pair[] = [];
  for (let count = 0; count < 20; count++) {
    pairs.push(dear(await new Pair(world, {}, { turns }).open({ heartbeatMs: 1_000_000 }), 3));
  }
  for (const { peer, world } of pairs) {
    peer.link.send(many(100));
    await world.settle();
  }
  assert.equal(turns.size, 20);
  const quick = await new Pair(world, {}, { turns }).open({ heartbeatMs: 1_000_000 });
  const seen = watch(world);
  quick.peer.link.send(many(5));
  await world.advance(LONGEST_TURN * 2);
  assert.equal(messages(quick), 5);
  await world.advance(2000);
  const least = Math.min(...pairs.map(messages));
  assert.ok(least > 32 && Math.max(...pairs.map(messages)) < least + 30, 'each in its turn');
  await world.advance(6000);
  seen.stop();
  assert.ok(pairs.every((pair) => messages(pair) === 100));
  assert.ok(seen.longest <= LONGEST_TURN * 1.5 + 4, `a turn of ${seen.longest} ms`);
});

test('what waits is bounded: of a peer that sends on and on, as much is handled as comes', async () => {
  const limits = { receiveWindow: 20_000, maxMessage: 20_000 };
  const pair = dear(await new Pair(new MemoryWorld(), limits).open({ heartbeatMs: 1_000_000 }), 5);
  const { world, peer } = pair;
  const one = response('x').length;
  for (let sent = 1; sent <= 100; sent++) {
    peer.link.send(many(50));
    peer.send({ type: Type.OFFER });
    await world.settle();
    const waiting = sent * 50 - messages(pair);
    assert.ok(waiting * one <= 40_000 + 50 * one, `${waiting * one} bytes wait`);
  }
  assert.ok(pair.session.behind);
  await world.advance(10_000);
  assert.equal(messages(pair), 5000);
  assert.equal(pair.told.filter((each) => each === 'OFFER').length, 100);
});

test('a batch that comes while one is being handled waits behind it', async () => {
  const pair = await new Pair().open();
  const { session, told } = pair;
  pair.on.onControl = (_session, type) => {
    if (type === Type.OFFER) session.receive(singleMessage({ type: Type.REQUEST }));
  };
  session.receive(batchOf(singleMessage({ type: Type.OFFER }), singleMessage({ type: Type.WITHDRAW })));
  assert.deepEqual(told, ['OFFER', 'WITHDRAW', 'REQUEST']);
  assert.ok(!session.behind);
});

test('what a later part sends leaves with it', async () => {
  const pair = await new Pair().open({ heartbeatMs: 100_000 });
  const { world, session, peer } = pair;
  pair.on.onData = (_session, _batch, _start, _end, count) => {
    world.time += 5 * count;
    session.send({ type: Type.OFFER });
  };
  peer.link.send(many(60));
  await world.settle();
  assert.equal(peer.take().length, 1);
  await world.advance(0);
  assert.ok(session.behind);
  assert.ok(peer.take().length >= 1);
});

test('one that fails in its turn does not take the turn of the others', () => {
  const world = new MemoryWorld();
  const turns = new Turns(world.clock, world.timers);
  const done: string[] = [];
  turns.add({
    resume: () => {
      throw new Error('a bug');
    },
  });
  turns.add({ resume: () => done.push('other') > 1 });
  turns.add({ resume: () => done.push('third') < 4 });
  assert.throws(() => world.timers.advance(), /a bug/);
  world.timers.advance();
  assert.deepEqual(done, ['other', 'third']);
  world.timers.advance();
  world.timers.advance();
  assert.deepEqual(done, ['other', 'third', 'third', 'third']);
  assert.equal(turns.size + world.timers.size, 0);
});
