import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  OFFSET,
  payload,
  type Session,
  type SessionContext,
  type SessionEvents,
  SessionHost,
  type SessionHostOptions,
  singleMessage,
  TrunklineError,
  Type,
} from '@trunkline/proto';
import { MemoryLink, MemoryWorld } from '../support/memory-link.js';
import { Scripted } from './session-ends.js';

class HostWorld {
  readonly world = new MemoryWorld();
  readonly open: Session[] = [];
  readonly closed: string[] = [];
  on: Partial<SessionEvents> = {};
  readonly host: SessionHost;
  private readonly context: SessionContext;

  constructor(options: Partial<SessionHostOptions> = {}, more: Partial<SessionContext> = {}) {
    this.context = { ...this.world.context(), ...more };
    const events: SessionEvents = {
      onOpen: (session) => {
        this.open.push(session);
        this.on.onOpen?.(session);
      },
      onControl: (session, type, batch, at) => this.on.onControl?.(session, type, batch, at),
      onData: () => {},
      onCredit: () => {},
      onClosed: (session, reason) => {
        this.open.splice(this.open.indexOf(session), 1);
        this.closed.push(reason.code);
      },
    };
    this.host = new SessionHost({ context: this.context, events, maxSessions: 100_000, ...options });
  }

  /** A peer whose link the host knows nothing of yet. */
  peer(): Scripted {
    const peer = new Scripted();
    peer.link = new MemoryLink(this.world, 'peer', peer.events);
    const accepted = new MemoryLink(this.world, 'accepted', this.host, true);
    peer.link.peer = accepted;
    accepted.peer = peer.link;
    return peer;
  }

  async hello(peer: Scripted, fields: Partial<payload.Hello> = {}): Promise<void> {
    const defaults = {
      nonce: new Uint8Array([1]),
      instance: new Uint8Array([2]),
      heartbeatMs: 2000,
      maxMessage: 65536,
    };
    peer.send({ type: Type.HELLO }, payload.hello.encode({ ...defaults, credit: 1000, ...fields }));
    await this.world.settle();
  }
}

test('a HELLO again is welcomed again, one with another nonce begins anew (M-23, M-24)', async () => {
  const made = new HostWorld();
  const peer = made.peer();
  await made.hello(peer);
  const [first] = made.open;
  await made.hello(peer);
  assert.deepEqual(peer.take(), ['WELCOME', 'WELCOME']);
  assert.deepEqual(made.open, [first]);
  await made.hello(peer, { nonce: new Uint8Array([7]) });
  assert.deepEqual(made.closed, ['SESSION_LOST']);
  assert.equal(made.open.length, 1);
  assert.notEqual(made.open[0], first);
  assert.equal(made.host.size, 1);
  assert.deepEqual(peer.take(), ['WELCOME']);
  made.host.close();
  await made.world.settle();
  assert.equal(made.world.timers.size, 0);
});

test('a HELLO without nonce or instance, or with one that is too long, is dropped and leaves nothing (M-21)', async () => {
  const made = new HostWorld();
  const long = new Uint8Array(65);
  for (const fields of [
    { nonce: new Uint8Array(0) },
    { instance: new Uint8Array(0) },
    { nonce: long },
    { instance: long },
  ]) {
    const peer = made.peer();
    await made.hello(peer, fields);
    assert.deepEqual(peer.take(), []);
  }
  assert.equal(made.host.size, 0);
  assert.equal(made.host.strangers, 4);
  const known = made.peer();
  await made.hello(known);
  await made.hello(known, { nonce: long });
  assert.equal(made.host.size, 1, 'the running session goes on');
  assert.deepEqual(made.open[0]?.faults, { payload: 1 });
});

test('a stranger is told RESET, but not for RESET, BYE or garbage (M-29)', async () => {
  const made = new HostWorld();
  const peer = made.peer();
  for (const type of [Type.HEARTBEAT, Type.RESET, Type.BYE]) {
    peer.send({ type });
    await made.world.settle();
  }
  peer.link.send(new Uint8Array(64));
  await made.world.settle();
  assert.deepEqual(peer.take(), ['RESET']);
  assert.equal(made.host.strangers, 1);
  assert.equal(made.host.size, 0);
});

test('a refused HELLO is told why: too many sessions, credentials, stopping, a heartbeat of 0', async () => {
  const made = new HostWorld({
    maxSessions: 1,
    authenticate: ({ token }) => (token === 'no' ? new TrunklineError('UNAUTHENTICATED') : undefined),
  });
  const codes: string[] = [];
  const refused = async (fields: Partial<payload.Hello> = {}) => {
    const peer = made.peer();
    await made.hello(peer, fields);
    codes.push(...peer.payloads(Type.BYE, payload.bye).map(({ code, retryable }) => `${code} ${retryable}`));
  };
  await refused({ token: 'no' });
  await refused({ heartbeatMs: 0 });
  await made.hello(made.peer());
  await refused();
  made.host.refuseNew();
  await refused();
  assert.deepEqual(codes, [
    'UNAUTHENTICATED false',
    'REQUEST_INVALID false',
    'LIMIT_EXCEEDED true',
    'SHUTTING_DOWN true',
  ]);
  assert.equal(made.host.size, 1);
});

test('a session that is closed while it opens leaves neither session nor link', async () => {
  const made = new HostWorld();
  made.on.onOpen = (session) => session.close('KICKED');
  const peer = made.peer();
  await made.hello(peer);
  assert.deepEqual(peer.take(), ['WELCOME', 'BYE']);
  assert.equal(made.host.size, 0);
  peer.send({ type: Type.HEARTBEAT });
  await made.world.settle();
  assert.deepEqual(peer.take(), ['RESET'], 'the link was forgotten');
  assert.equal(made.world.timers.size, 0);
});

test('a fault in one session leaves the others alone and flushes go on', async () => {
  const faults: unknown[] = [];
  const made = new HostWorld({}, { onFault: (error) => faults.push(error) });
  const [bad, good] = [made.peer(), made.peer()];
  for (const peer of [bad, good]) await made.hello(peer);
  const [first] = made.open;
  made.on.onControl = (session) => {
    if (session === first) throw new Error('a bug');
    session.send({ type: Type.ACCEPTED });
  };
  for (const peer of [bad, good]) peer.send({ type: Type.REQUEST });
  await made.world.settle();
  assert.equal(faults.length, 1);
  assert.deepEqual(bad.take(), ['WELCOME', 'RESET']);
  assert.deepEqual(good.take(), ['WELCOME', 'ACCEPTED']);
  assert.equal(made.host.size, 1);
});

test('when somebody left all sessions are sent to, in bursts', async () => {
  const made = new HostWorld();
  const peers: Scripted[] = [];
  for (let count = 0; count < 1000; count++) {
    const peer = made.peer();
    peers.push(peer);
    peer.send(
      { type: Type.HELLO },
      payload.hello.encode({ nonce: new Uint8Array([1]), instance: new Uint8Array([2]), heartbeatMs: 60_000 }),
    );
  }
  await made.world.settle();
  const timers = made.world.timers.size;
  const pinged = () => peers.filter(({ batches }) => batches.length > 1).length;
  made.host.onSuspect();
  made.host.onSuspect();
  await made.world.settle();
  assert.equal(pinged(), 256);
  await made.world.advance(30);
  assert.equal(pinged(), 1000);
  await made.world.advance(100);
  assert.ok(
    peers.every(({ batches }) => batches.length === 3),
    'once more for who left meanwhile',
  );
  assert.equal(made.world.timers.size, timers);
  made.host.onSuspect();
  made.host.close();
  assert.equal(made.world.timers.size, 0);
});

test('a HELLO of another version is told so in ours, and leaves nothing; other messages of one are not answered (M-88)', async () => {
  const made = new HostWorld();
  const spoiled = (type: number, version: number) => {
    const batch = singleMessage({ type });
    batch[OFFSET.version] = version;
    return batch;
  };
  for (const version of [0, 2, 255]) {
    const peer = made.peer();
    peer.link.send(spoiled(Type.HELLO, version));
    await made.world.settle();
    assert.deepEqual(
      peer.payloads(Type.BYE, payload.bye).map(({ code, retryable }) => [code, retryable]),
      [['VERSION_UNSUPPORTED', false]],
    );
  }
  const peer = made.peer();
  const wrongLength = spoiled(Type.HELLO, 2);
  wrongLength[OFFSET.length] = 200;
  for (const batch of [...[Type.REQUEST, Type.BYE, Type.RESET].map((type) => spoiled(type, 2)), wrongLength]) {
    peer.link.send(batch);
    await made.world.settle();
  }
  assert.deepEqual(peer.take(), []);
  assert.equal(made.host.size, 0);
  assert.equal(made.host.strangers, 7);
  // within a session it is a fault like any other
  const known = made.peer();
  await made.hello(known);
  known.take();
  known.link.send(spoiled(Type.HELLO, 2));
  await made.world.settle();
  assert.deepEqual([known.take(), made.host.size], [[], 1]);
});
