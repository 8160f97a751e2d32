import { type ErrorCode, knownCode, TrunklineError } from './errors.js';
import { reportFault } from './fault.js';
import type { Flushable } from './flusher.js';
import { Grants } from './grants.js';
import { helloBatch, welcomeBatch } from './greeting.js';
import { type Header, type HeaderFault, headerFault, isData, OFFSET, readU32, Type, VERSION } from './header.js';
import { Incoming } from './incoming.js';
import { Outgoing } from './outgoing.js';
import * as payload from './payload.js';
import type { Link } from './ports.js';
import type { FaultCounters, Identity, SessionContext, SessionEvents, SessionState } from './session-types.js';
import { sameBytes, singleMessage } from './single-message.js';
import { Timer, type TimerOwner } from './timers.js';

/** The moves a session has; PROTOCOL.md §5. An acceptor begins `open`. */
const moves: Record<SessionState, readonly SessionState[]> = {
  connecting: ['open', 'closed'],
  open: ['closed'],
  closed: [],
};

/** A peer that announces a shorter `heartbeat_ms`, ms, is measured by this one: looking for it more often costs too much. */
const LEAST_HEARTBEAT = 10;
/** Bytes that wait for the end of the running code at most, and a message more. */
const MOST_WAITING = 256 * 1024;
const MOST_LIVENESS = 2 ** 30;
/** Longest name of a peer that is kept, characters. */
const MAX_NAME = 256;

/**
 * One peer between HELLO and BYE or loss. Both ends are the same code: the initiator says HELLO, the acceptor is made
 * from one. Knows credit, liveness and batching; what the messages mean is its owner's business.
 */
export class Session implements Flushable, TimerOwner {
  state: SessionState = 'connecting';
  /** The peer; empty until the session is open. */
  peer: Identity = { instance: new Uint8Array(0), name: '' };
  /** Largest message the peer takes, bytes. */
  peerMaxMessage = 0;
  /** Data bytes that may still be sent; may end below zero by one message. */
  credit = 0;
  /** When a batch was last received. */
  lastHeard: number;
  /** For the owner: what hangs on this session. */
  owner: unknown;
  readonly faults: FaultCounters = {};
  messagesOut = 0;
  bytesIn = 0;
  bytesOut = 0;

  private readonly outgoing: Outgoing;
  private readonly incoming: Incoming;
  private dirty = false;
  private exhausted = false;
  /** `onCredit` is called, too, when more than half of the peer's window is free. */
  private awaitsHalf = false;
  private peerLiveness = 0;
  private creditLimit = 0;
  private initialCredit = 0;
  private batchesOut = 0;
  private helloWait: number;
  private readonly heartbeatTimer = new Timer(this);
  private readonly livenessTimer = new Timer(this);
  private readonly helloTimer = new Timer(this);
  private readonly grants: Grants;

  constructor(
    readonly link: Link,
    private readonly context: SessionContext,
    private readonly events: SessionEvents,
    readonly nonce: Uint8Array,
    private readonly token = '',
  ) {
    this.outgoing = new Outgoing(context.allocate);
    this.incoming = new Incoming(this, context, events);
    this.grants = new Grants(context, (limit) => this.send({ type: Type.CREDIT }, payload.credit.encode({ limit })));
    this.helloWait = context.limits.helloAfter;
    this.lastHeard = context.clock.now();
  }

  /** Begins as the initiator: says HELLO until it is welcomed. The link should be up; call `hello` when it comes up. */
  static initiate(link: Link, context: SessionContext, events: SessionEvents, token = ''): Session {
    const session = new Session(link, context, events, context.random.bytes(8), token);
    session.hello();
    return session;
  }

  /** Begins as the acceptor of a HELLO that its owner has checked. */
  static accept(link: Link, context: SessionContext, events: SessionEvents, hello: payload.Hello): Session {
    const session = new Session(link, context, events, hello.nonce.slice());
    session.sendWelcome();
    session.open(hello);
    return session;
  }

  /** Says HELLO now and again after a growing wait with jitter. */
  hello(): void {
    if (this.state !== 'connecting') return;
    const { limits, random, timers } = this.context;
    this.link.send(helloBatch(this.context, this.nonce, this.token));
    timers.start(this.helloTimer, this.helloWait * (0.75 + random.next() / 2));
    this.helloWait = Math.min(limits.helloCap, this.helloWait * 2);
  }

  /** A repeated HELLO of this very session: the WELCOME was lost or is under way. */
  sendWelcome(): void {
    this.link.send(welcomeBatch(this.context, this.nonce));
  }

  /**
   * Takes one batch from the link: all of it, or nothing and a count of the fault. What is dear to handle is handled in
   * parts, the later ones in later turns; that the peer was heard is noted now.
   */
  receive(batch: Uint8Array): void {
    if (this.state === 'closed') return;
    const { maxMessage } = this.context.limits;
    for (let at = 0; at < batch.length; at += readU32(batch, at)) {
      const fault = headerFault(batch, at, batch.length, maxMessage);
      if (fault !== undefined) {
        this.countFault(fault);
        if (this.state === 'open') this.incoming.skip();
        else if (fault === 'version' && at === 0) this.receiveOtherVersion(batch);
        return;
      }
    }
    if (batch.length === 0) return;
    this.lastHeard = this.context.clock.now();
    const first = batch[OFFSET.type]!;
    if (this.state === 'connecting') {
      try {
        this.receiveConnecting(batch, first);
      } catch (error) {
        this.failed(error);
      }
    } else if (first !== Type.WELCOME && first !== Type.HELLO) {
      this.bytesIn += batch.length;
      this.incoming.take(batch, this.lastHeard);
    }
  }

  /** Messages handled so far. */
  get messagesIn(): number {
    return this.incoming.messages;
  }

  /** Some of what the peer sent waits for a later turn: it may have answered what seems unanswered. */
  get behind(): boolean {
    return this.incoming.behind;
  }

  /** @internal A fault in what a batch caused: it ends this session and nothing else. */
  failed(error: unknown): void {
    reportFault(this.context.onFault, error);
    if (this.state === 'open') this.reset('an internal fault');
    else this.lost('an internal fault');
  }

  /** What both ends believe may differ: the peer is told to begin anew. */
  private reset(reason: string): void {
    this.link.send(singleMessage({ type: Type.RESET }));
    this.lost(reason);
  }

  private receiveConnecting(batch: Uint8Array, type: number): void {
    if (type === Type.WELCOME) {
      const welcome = this.decode(payload.welcome, batch, 0);
      if (welcome === undefined || !sameBytes(welcome.nonce, this.nonce)) return;
      if (welcome.heartbeatMs > 0) this.open(welcome);
      else this.countFault('payload');
    } else if (type === Type.BYE) {
      this.receiveBye(batch, 0);
    }
  }

  /** A peer of another version says BYE in its own words: all that is known of it is where version and type stand. */
  private receiveOtherVersion(batch: Uint8Array): void {
    if (batch[OFFSET.type] !== Type.BYE) return;
    const version = batch[OFFSET.version];
    this.end(new TrunklineError('VERSION_UNSUPPORTED', `the peer speaks version ${version}, this end ${VERSION}`));
  }

  /** @internal A message of the session's own, HELLO to CREDIT. */
  receiveOwn(batch: Uint8Array, at: number, type: number): void {
    if (type === Type.HEARTBEAT) {
      const beat = this.decode(payload.heartbeat, batch, at);
      // PROTOCOL.md §5.4: batches were lost or doubled on the way, so what both ends believe may differ
      if (beat !== undefined && beat.batches !== this.incoming.number) {
        this.reset('batches were lost on the link');
      }
    } else if (type === Type.CREDIT) {
      const credit = this.decode(payload.credit, batch, at);
      if (credit !== undefined && credit.limit > this.creditLimit) this.addCredit(credit.limit - this.creditLimit);
    } else if (type === Type.BYE) {
      this.receiveBye(batch, at);
    } else if (type === Type.RESET) {
      this.lost('the peer does not know the session');
    } else {
      this.countFault('unexpected');
    }
  }

  private receiveBye(batch: Uint8Array, at: number): void {
    const bye = this.decode(payload.bye, batch, at);
    if (bye === undefined) return;
    this.end(new TrunklineError(knownCode(bye.code, 'CLOSED'), bye.message || undefined, { retryable: bye.retryable }));
  }

  private addCredit(bytes: number): void {
    this.creditLimit += bytes;
    this.credit += bytes;
    const half = this.awaitsHalf && this.isHalfFree;
    if (!half && !(this.exhausted && this.credit > 0)) return;
    if (half) this.awaitsHalf = false;
    if (this.credit > 0) this.exhausted = false;
    this.events.onCredit(this);
  }

  /**
   * Whether more than half of what the peer grants is free: the other half is left to what cannot wait for the peer to
   * be done with its backlog.
   */
  get isHalfFree(): boolean {
    return this.credit > this.initialCredit / 2;
  }

  /** Has `onCredit` called when more than half is free. */
  awaitHalf(): void {
    this.awaitsHalf = true;
  }

  /** Decodes a payload; a bad one is counted and concerns this message only. */
  decode<T>(kind: payload.Readable<T>, batch: Uint8Array, at: number): T | undefined {
    try {
      return payload.readPayload(kind, batch, at);
    } catch {
      this.countFault('payload');
      return undefined;
    }
  }

  countFault(fault: HeaderFault | 'payload' | 'unexpected'): void {
    this.faults[fault] = (this.faults[fault] ?? 0) + 1;
  }

  // ---- sending ----

  /** Queues a message that spends no credit. */
  send(header: Header, bytes?: Uint8Array): void {
    if (this.state !== 'open') return;
    this.makeWay();
    this.outgoing.message(header, bytes);
    this.messagesOut++;
    this.touch();
  }

  /** As `send`. */
  sendWritten(header: Header, { bytes, length }: payload.Written): void {
    if (this.state !== 'open') return;
    this.makeWay();
    this.outgoing.message(header, bytes, length);
    this.messagesOut++;
    this.touch();
  }

  /** Queues a message that is encoded already, at once and in its place. */
  sendEncoded(message: Uint8Array): void {
    if (this.state !== 'open') return;
    // the receiver gives credit back for every data message, so one that must not wait for credit spends it all the same
    if (isData(message[OFFSET.type]!)) {
      this.sendData(message, 0, message.length, 1);
      return;
    }
    this.outgoing.append(message, 0, message.length);
    this.messagesOut++;
    this.touch();
  }

  /** Queues data messages that stand back to back in `buffer`, which is never written again. Ask `credit` before. */
  sendData(buffer: Uint8Array, start: number, end: number, count: number): void {
    if (this.state !== 'open') return;
    this.outgoing.append(buffer, start, end);
    this.spend(end - start, count);
  }

  /**
   * Room for one data message of `length` bytes; write it at the returned offset of `target` at once.
   * Returns -1 when there is no credit or the session is not open: the message was not taken.
   */
  reserveData(length: number): number {
    if (this.credit <= 0 || this.state !== 'open') {
      this.exhausted = this.credit <= 0;
      return -1;
    }
    this.makeWay();
    const at = this.outgoing.reserve(length);
    this.spend(length, 1);
    return at;
  }

  get target(): Uint8Array {
    return this.outgoing.target;
  }

  private spend(bytes: number, count: number): void {
    this.credit -= bytes;
    if (this.credit <= 0) this.exhausted = true;
    this.messagesOut += count;
    this.touch();
  }

  /** Data bytes sent that the peer has not consumed yet: the load of a member of a group. */
  get outstanding(): number {
    // a peer may grant more than it consumed
    return Math.max(0, this.initialCredit - this.credit);
  }

  /** What waits leaves before the code that runs now is done, if it is much: the peer has something to do meanwhile. */
  private makeWay(): void {
    if (this.outgoing.bytes >= MOST_WAITING) this.flush();
  }

  private touch(): void {
    if (this.dirty) return;
    this.dirty = true;
    this.context.flusher.add(this);
  }

  flush(): void {
    this.dirty = false;
    if (this.state !== 'open' || this.outgoing.bytes === 0) return;
    this.bytesOut += this.outgoing.bytes;
    this.batchesOut += this.outgoing.flush(this.link);
  }

  /**
   * The receiver is done with `bytes` of data: grants them again, in steps small enough for the sender to see who is
   * behind and large enough to cost nothing.
   */
  consume(bytes: number): void {
    this.grants.consume(bytes);
  }

  /** Sends something at once: a transport then reports a peer that is gone. */
  ping(): void {
    if (this.state === 'open') this.beat();
  }

  private beat(): void {
    this.flush();
    const bytes = payload.heartbeat.encode({ batches: this.batchesOut });
    this.batchesOut++;
    this.link.send(singleMessage({ type: Type.HEARTBEAT }, bytes));
  }

  // ---- states ----

  /** Returns whether there is such a move; one that there is not changes nothing. */
  private move(next: SessionState): boolean {
    if (moves[this.state].includes(next)) {
      this.state = next;
      return true;
    }
    reportFault(this.context.onFault, new TrunklineError('STATE_INVALID', `session: ${this.state} to ${next}`));
    return false;
  }

  private open(peer: payload.Welcome): void {
    if (!this.move('open')) return;
    this.peer = { instance: peer.instance.slice(), name: peer.name.slice(0, MAX_NAME) };
    this.peerMaxMessage = peer.maxMessage;
    const { timers, limits } = this.context;
    this.peerLiveness = Math.min(MOST_LIVENESS, Math.max(LEAST_HEARTBEAT, peer.heartbeatMs) * limits.livenessFactor);
    this.creditLimit = peer.credit;
    this.credit = peer.credit;
    this.exhausted = peer.credit === 0;
    this.initialCredit = peer.credit;
    timers.stop(this.helloTimer);
    timers.start(this.heartbeatTimer, limits.heartbeat);
    timers.start(this.livenessTimer, this.peerLiveness);
    this.events.onOpen(this);
  }

  onTimer(timer: Timer): void {
    const { timers, clock, limits } = this.context;
    if (timer === this.helloTimer) {
      this.hello();
    } else if (timer === this.heartbeatTimer) {
      timers.start(timer, limits.heartbeat);
      this.beat();
      this.outgoing.rest();
    } else {
      const silence = clock.now() - this.lastHeard;
      if (silence < this.peerLiveness) timers.start(timer, this.peerLiveness - silence);
      else this.down(`peer not heard for ${Math.round(silence)} ms`);
    }
  }

  /**
   * The link is down, or silent. What has come and waits is dropped with the session, as what was under way; but a peer
   * that said BYE is heard to its end, as there is nothing missing.
   */
  down(reason: string): void {
    if (!this.incoming.saidBye) this.lost(reason);
  }

  /** The peer, or what it knows of the session, is gone. */
  lost(reason: string): void {
    if (this.state !== 'closed') this.end(new TrunklineError('SESSION_LOST', reason, { retryable: true }));
  }

  /** Flushes, says BYE and ends. Always succeeds; a closed session stays as it is. */
  close(code: ErrorCode = 'CLOSED', message = '', retryable = false): void {
    if (this.state === 'closed') return;
    this.flush();
    this.link.send(singleMessage({ type: Type.BYE }, payload.bye.encode({ code, message, retryable })));
    this.end(new TrunklineError(code, message || undefined, { retryable }));
  }

  private end(reason: TrunklineError): void {
    if (!this.move('closed')) return;
    const { timers } = this.context;
    timers.stop(this.helloTimer);
    timers.stop(this.heartbeatTimer);
    timers.stop(this.livenessTimer);
    this.grants.stop();
    this.incoming.clear();
    this.outgoing.clear();
    this.events.onClosed(this, reason);
  }
}
