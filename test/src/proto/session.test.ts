import assert from 'node:assert/strict';
import { test } from 'node:test';
import { payload, singleMessage, Type } from '@trunkline/proto';
import { MemoryWorld } from '../support/memory-link.js';
import { batchOf, Pair, response } from './session-ends.js';

const bye = (code: string, retryable = false) => payload.bye.encode({ code, message: 'why', retryable });

test('HELLO is repeated with the same nonce, after waits that double with jitter, until WELCOME (M-19)', async () => {
  const pair = new Pair(new MemoryWorld(), { helloAfter: 100, helloCap: 1000 });
  const { world, peer } = pair;
  const times: number[] = [];
  const nonces = new Set<string>();
  for (let step = 0; step < 5000; step++) {
    await world.settle();
    for (const { nonce } of peer.payloads(Type.HELLO, payload.hello)) {
      times.push(world.time);
      nonces.add(nonce.join());
    }
    const next = world.timers.nextDeadline();
    if (next === undefined || times.length === 8) break;
    await world.advance(Math.max(0, next - world.time));
  }
  assert.equal(nonces.size, 1);
  const waits = times.slice(1).map((time, index) => time - times[index]!);
  for (const [index, wait] of waits.entries()) {
    const base = Math.min(1000, 100 * 2 ** index);
    assert.ok(wait >= base * 0.75 && wait <= base * 1.25 + 1, `wait ${index}: ${wait}`);
  }
  await pair.open();
  assert.equal(pair.session.state, 'open');
  assert.equal(world.timers.size, 2, 'heartbeat and liveness');
});

test('a connecting session acts on its WELCOME and on BYE only (M-16, M-20)', async () => {
  const pair = new Pair();
  pair.peer.send({ type: Type.RESET });
  pair.peer.send({ type: Type.REQUEST, code: 1 });
  pair.peer.link.send(response('early'));
  pair.beat(77);
  pair.credit(5);
  pair.welcome({ nonce: new Uint8Array([9, 9]) });
  await pair.world.settle();
  assert.equal(pair.session.state, 'connecting');
  assert.deepEqual(pair.told, []);
  pair.peer.send({ type: Type.BYE }, bye('UNAUTHENTICATED'));
  await pair.world.settle();
  assert.deepEqual(pair.closed, { code: 'UNAUTHENTICATED', retryable: false, message: 'why' });
  assert.equal(pair.world.timers.size, 0);
});

test('a second or a late WELCOME changes nothing and is not counted (M-25)', async () => {
  const pair = await new Pair().open({ credit: 500 });
  pair.session.sendData(response('x'), 0, response('x').length, 1);
  const { credit } = pair.session;
  pair.welcome({ credit: 9000, maxMessage: 1 });
  pair.welcome({ nonce: new Uint8Array([3]) });
  pair.beat(0);
  await pair.world.settle();
  assert.equal(pair.session.state, 'open');
  assert.equal(pair.session.credit, credit);
  assert.equal(pair.session.peerMaxMessage, 65536);
});

test('a HEARTBEAT with the count of what came keeps the session, another one resets it (M-26)', async () => {
  const pair = await new Pair().open();
  pair.peer.link.send(batchOf(response('a'), response('b')));
  pair.beat(1);
  pair.peer.link.send(new Uint8Array(40));
  pair.beat(3);
  await pair.world.settle();
  assert.equal(pair.session.state, 'open');
  assert.deepEqual(pair.session.faults, { length: 1 });
  pair.beat(5);
  await pair.world.settle();
  assert.deepEqual(pair.peer.take(), ['RESET']);
  assert.equal(pair.closed?.code, 'SESSION_LOST');
  assert.equal(pair.closed?.retryable, true);
  assert.equal(pair.world.timers.size, 0);
});

test('what is sent is counted by the heartbeats, which come however busy the session is (M-27)', async () => {
  const pair = await new Pair(new MemoryWorld(), { heartbeat: 100 }).open({ heartbeatMs: 100_000 });
  const beats: number[] = [];
  for (let step = 0; step < 10; step++) {
    pair.session.send({ type: Type.REQUEST, code: 1 });
    await pair.world.advance(50);
    beats.push(...pair.peer.payloads(Type.HEARTBEAT, payload.heartbeat).map(({ batches }) => batches));
  }
  // two batches of requests and the heartbeat itself in each period
  assert.deepEqual(beats, [2, 5, 8, 11, 14]);
});

test('a bad message drops its whole batch and nothing else (M-10)', async () => {
  const pair = await new Pair().open();
  const bad = response('bad');
  bad[4] = 9;
  pair.peer.link.send(batchOf(response('good'), bad));
  pair.peer.link.send(response('next'));
  await pair.world.settle();
  assert.deepEqual(pair.told, ['data 1']);
  assert.deepEqual(pair.session.faults, { version: 1 });
});

test('data is handed over in runs of one line; boundaries stand alone', async () => {
  const pair = await new Pair().open();
  const two = response('b', false, 2);
  pair.peer.link.send(batchOf(response('a'), response('a'), two, response('a'), response('end', true), response('a')));
  await pair.world.settle();
  assert.deepEqual(pair.told, ['data 2', 'data 1', 'data 1', 'data 1', 'data 1']);
});

test('credit may be overshot by one message; then nothing is taken until more is granted (M-35, M-39)', async () => {
  const pair = await new Pair().open({ credit: 100 });
  const { session } = pair;
  assert.ok(session.reserveData(90) >= 0);
  assert.ok(session.reserveData(90) >= 0);
  assert.equal(session.credit, -80);
  assert.equal(session.outstanding, 180);
  assert.equal(session.reserveData(1), -1);
  pair.credit(150);
  pair.credit(100);
  await pair.world.settle();
  assert.deepEqual(pair.told, [], 'still below zero, and a limit that goes back is ignored');
  assert.equal(session.credit, -30);
  pair.credit(300);
  pair.credit(400);
  await pair.world.settle();
  assert.deepEqual(pair.told, ['credit 120'], 'told once');
  assert.equal(session.credit, 220);
  pair.credit(Number.MAX_SAFE_INTEGER);
  pair.credit(Number.MAX_SAFE_INTEGER);
  await pair.world.settle();
  assert.equal(session.credit, Number.MAX_SAFE_INTEGER - 180);
});

test('a session that begins without any credit hears of the first that comes', async () => {
  const pair = await new Pair().open({ credit: 0 });
  pair.credit(10);
  await pair.world.settle();
  assert.deepEqual(pair.told, ['credit 10']);
});

test('a fast stream is granted credit in large steps, and what it then left soon after (M-38)', async () => {
  const pair = await new Pair().open();
  const { session, peer, world } = pair;
  const window = pair.context.limits.receiveWindow;
  const granted = () => peer.payloads(Type.CREDIT, payload.credit).map(({ limit }) => limit - window);
  const KIB = 1024;
  session.consume(32 * KIB);
  await world.settle();
  assert.deepEqual(granted(), [32 * KIB], 'at once after a pause');
  assert.equal(world.timers.size, 2, 'there is nothing more to tell');
  for (let count = 0; count < 32; count++) session.consume(64 * KIB);
  session.consume(40 * KIB);
  await world.settle();
  assert.deepEqual(granted(), [1056 * KIB, 2080 * KIB]);
  await world.advance(15);
  assert.deepEqual(granted(), []);
  await world.advance(10);
  assert.deepEqual(granted(), [2120 * KIB], 'the rest');
  session.consume(31 * KIB);
  await world.advance(100);
  assert.deepEqual(granted(), []);
  assert.equal(world.timers.size, 2, 'no timer runs on');
});

test('what is consumed is granted again in steps, and a closed session grants nothing (M-38)', async () => {
  const pair = await new Pair(new MemoryWorld(), { receiveWindow: 4000 }).open();
  const { session, peer, world } = pair;
  session.consume(999);
  await world.settle();
  assert.deepEqual(peer.take(), []);
  session.consume(1);
  session.consume(2500);
  await world.settle();
  assert.deepEqual(
    peer.payloads(Type.CREDIT, payload.credit).map(({ limit }) => limit),
    [5000, 7500],
  );
  session.close();
  session.consume(100_000);
  await world.settle();
  assert.deepEqual(peer.take(), ['BYE']);
});

test('a peer that is silent for its own heartbeats times the factor is lost, not earlier (M-28)', async () => {
  const pair = await new Pair(new MemoryWorld(), { livenessFactor: 3, heartbeat: 100_000 }).open({ heartbeatMs: 100 });
  await pair.world.advance(299);
  pair.peer.link.send(response('sign of life'));
  await pair.world.advance(299);
  assert.equal(pair.session.state, 'open');
  await pair.world.advance(2);
  assert.equal(pair.closed?.code, 'SESSION_LOST');
  assert.equal(pair.world.timers.size, 0);
});

test('a heartbeat of 1 ms or of 2^32-1 ms in WELCOME neither spins nor overflows', async () => {
  const none = await new Pair(new MemoryWorld(), { heartbeat: 100_000 }).open({ heartbeatMs: 1 });
  await none.world.advance(29);
  assert.equal(none.session.state, 'open');
  await none.world.advance(2);
  assert.equal(none.session.state, 'closed');
  const most = await new Pair(new MemoryWorld(), { heartbeat: 2 ** 30 }).open({ heartbeatMs: 2 ** 32 - 1 });
  await most.world.advance(10_000_000);
  assert.equal(most.session.state, 'open');
});

test('BYE ends with its code; one that is not known reads as CLOSED (M-32)', async () => {
  for (const [code, retryable, read] of [
    ['KICKED', false, 'KICKED'],
    ['SHUTTING_DOWN', true, 'SHUTTING_DOWN'],
    ['FROM_THE_FUTURE', true, 'CLOSED'],
    ['constructor', false, 'CLOSED'],
  ] as const) {
    const pair = await new Pair().open();
    pair.peer.send({ type: Type.BYE }, bye(code, retryable));
    pair.peer.send({ type: Type.RESET });
    await pair.world.settle();
    assert.deepEqual([pair.closed?.code, pair.closed?.retryable], [read, retryable]);
    assert.deepEqual(pair.told, ['closed']);
    assert.deepEqual(pair.peer.take(), [], 'not answered');
  }
});

test('RESET ends an open session as lost (M-30)', async () => {
  const pair = await new Pair().open();
  pair.peer.send({ type: Type.RESET });
  await pair.world.settle();
  assert.equal(pair.closed?.code, 'SESSION_LOST');
  assert.equal(pair.session.state, 'closed');
});

test('close works in every state, once, with BYE as the last batch (M-31)', async () => {
  const connecting = new Pair();
  connecting.session.close();
  await connecting.world.settle();
  assert.deepEqual(connecting.peer.take(), ['HELLO', 'BYE']);
  const open = await new Pair().open();
  open.session.send({ type: Type.OFFER });
  open.session.close('SHUTTING_DOWN', '', true);
  open.session.close();
  open.session.lost('late');
  open.session.send({ type: Type.OFFER });
  open.session.ping();
  await open.world.settle();
  assert.deepEqual(open.peer.take(), ['OFFER', 'BYE']);
  assert.deepEqual(open.told, ['closed']);
  for (const { world } of [connecting, open]) {
    assert.equal(world.timers.size, 0);
    await world.advance(100_000);
  }
  assert.deepEqual(connecting.peer.take(), []);
});

test('a session that is closed by what hears of a message reads no further in its batch', async () => {
  const pair = await new Pair().open();
  pair.on.onData = (session) => session.close();
  pair.peer.link.send(batchOf(response('a', true), response('b', true), singleMessage({ type: Type.REQUEST })));
  await pair.world.settle();
  assert.deepEqual(pair.told, ['data 1', 'closed']);
});

test('a fault while a message is handled ends this session alone, and is reported', async () => {
  const faults: unknown[] = [];
  const pair = await new Pair(new MemoryWorld(), {}, { onFault: (error) => faults.push(error) }).open();
  pair.on.onControl = () => {
    throw new Error('a bug');
  };
  pair.peer.send({ type: Type.OFFER });
  pair.peer.send({ type: Type.OFFER });
  await pair.world.settle();
  assert.deepEqual(
    faults.map((error) => (error as Error).message),
    ['a bug'],
  );
  assert.deepEqual(pair.peer.take(), ['RESET']);
  assert.equal(pair.closed?.code, 'SESSION_LOST');
  assert.equal(pair.world.timers.size, 0);
});

test('without anybody who hears of faults they are thrown', async () => {
  const pair = await new Pair().open();
  pair.on.onControl = () => {
    throw new Error('a bug');
  };
  assert.throws(() => pair.session.receive(singleMessage({ type: Type.OFFER })), /a bug/);
});

test('a payload that cannot be decoded concerns its message alone', async () => {
  const pair = await new Pair().open();
  for (const type of [Type.HEARTBEAT, Type.CREDIT, Type.BYE]) pair.peer.send({ type }, new Uint8Array([255, 255, 255]));
  pair.peer.send({ type: Type.HEARTBEAT }, payload.heartbeat.encode({ batches: 3 }));
  await pair.world.settle();
  assert.equal(pair.session.state, 'open');
  assert.deepEqual(pair.session.faults, { payload: 3 });
});

test('a name of a megabyte is cut', async () => {
  const pair = await new Pair().open({ name: 'x'.repeat(1_000_000) });
  assert.equal(pair.session.peer.name.length, 256);
});
