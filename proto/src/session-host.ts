import { TrunklineError } from './errors.js';
import { headerFault, OFFSET, readU32, Type, VERSION } from './header.js';
import * as payload from './payload.js';
import type { Link, LinkEvents } from './ports.js';
import { Session } from './session.js';
import type { SessionContext, SessionEvents } from './session-types.js';
import { sameBytes, singleMessage } from './single-message.js';
import { Timer, type TimerOwner } from './timers.js';

export interface SessionHostOptions {
  readonly context: SessionContext;
  readonly events: SessionEvents;
  readonly maxSessions: number;
  /** Says why a HELLO is refused, or undefined. */
  readonly authenticate?: (hello: payload.Hello) => TrunklineError | undefined;
}

/** Longest nonce and instance of a HELLO, bytes: they are kept for as long as the session lasts. */
const MAX_ID = 64;
/** Sessions pinged at one time when somebody left, and the pause until the next of them, ms. */
const PING_BURST = 256;
const PING_PAUSE = 10;

/**
 * The accepting end: makes sessions of the links of its listeners. A link without a session is answered RESET and
 * forgotten, so that strangers and garbage cost nothing that lasts.
 */
export class SessionHost implements LinkEvents, TimerOwner {
  private readonly sessions = new Map<Link, Session>();
  private readonly events: SessionEvents;
  private stopping = false;
  /** The sessions that are still to be pinged, and whether somebody else left meanwhile. */
  private sweep: IterableIterator<Session> | undefined;
  private sweepAgain = false;
  private readonly sweepTimer = new Timer(this);
  /** Batches that could not be read and came from no session. */
  strangers = 0;

  constructor(private readonly options: SessionHostOptions) {
    const { events } = options;
    this.events = {
      onOpen: (session) => events.onOpen(session),
      onControl: (session, type, batch, at) => events.onControl(session, type, batch, at),
      onData: (session, batch, start, end, count) => events.onData(session, batch, start, end, count),
      onCredit: (session) => events.onCredit(session),
      onClosed: (session, reason) => {
        if (this.sessions.get(session.link) === session) {
          this.sessions.delete(session.link);
          session.link.close();
        }
        events.onClosed(session, reason);
      },
    };
  }

  get size(): number {
    return this.sessions.size;
  }

  all(): IterableIterator<Session> {
    return this.sessions.values();
  }

  onBatch(link: Link, batch: Uint8Array): void {
    this.options.context.flusher.hold();
    const session = this.sessions.get(link);
    if (batch.length > OFFSET.type && batch[OFFSET.type] === Type.HELLO) this.receiveHello(link, session, batch);
    else if (session !== undefined) session.receive(batch);
    else this.receiveStranger(link, batch);
  }

  private receiveHello(link: Link, session: Session | undefined, batch: Uint8Array): void {
    if (session === undefined && headerFault(batch, 0, batch.length, this.maxMessage) === 'version') {
      // PROTOCOL.md M-88: whoever speaks another version hears why, in ours
      this.strangers++;
      this.refuse(link, new TrunklineError('VERSION_UNSUPPORTED', `this end speaks version ${VERSION}`));
      return;
    }
    const hello = this.readHello(batch);
    if (hello === undefined) {
      if (session !== undefined) session.countFault('payload');
      else this.receiveStranger(link, new Uint8Array(1));
      return;
    }
    if (session !== undefined && sameBytes(session.nonce, hello.nonce)) {
      session.sendWelcome();
      return;
    }
    // PROTOCOL.md §5.3: a HELLO with another nonce ends what was before it on this link
    if (session !== undefined) {
      this.sessions.delete(link);
      session.lost('the peer began a new session');
    }
    const refusal = this.refusal(hello);
    if (refusal !== undefined) {
      this.refuse(link, refusal);
      return;
    }
    this.accept(link, hello);
  }

  private refuse(link: Link, { code, message, retryable }: TrunklineError): void {
    link.send(singleMessage({ type: Type.BYE }, payload.bye.encode({ code, message, retryable })));
    link.close();
  }

  private get maxMessage(): number {
    return this.options.context.limits.maxMessage;
  }

  private accept(link: Link, hello: payload.Hello): void {
    const session = Session.accept(link, this.options.context, this.events, hello);
    if (session.state === 'closed') link.close();
    else this.sessions.set(link, session);
  }

  private readHello(batch: Uint8Array): payload.Hello | undefined {
    if (headerFault(batch, 0, batch.length, this.maxMessage) !== undefined) return undefined;
    try {
      const hello = payload.readPayload(payload.hello, batch, 0);
      return isId(hello.nonce) && isId(hello.instance) ? hello : undefined;
    } catch {
      return undefined;
    }
  }

  private refusal(hello: payload.Hello): TrunklineError | undefined {
    if (this.stopping) return new TrunklineError('SHUTTING_DOWN', undefined, { retryable: true });
    if (hello.heartbeatMs === 0) return new TrunklineError('REQUEST_INVALID', 'heartbeat_ms must not be 0');
    if (this.sessions.size >= this.options.maxSessions) {
      return new TrunklineError('LIMIT_EXCEEDED', `more than ${this.options.maxSessions} sessions`, {
        retryable: true,
      });
    }
    return this.options.authenticate?.(hello);
  }

  private receiveStranger(link: Link, batch: Uint8Array): void {
    const { maxMessage } = this;
    let valid = batch.length > 0;
    for (let at = 0; valid && at < batch.length; at += readU32(batch, at)) {
      valid = headerFault(batch, at, batch.length, maxMessage) === undefined;
    }
    const type = batch[OFFSET.type];
    if (!valid) this.strangers++;
    // a RESET is never answered by one, and a BYE needs no answer
    else if (type !== Type.RESET && type !== Type.BYE) link.send(singleMessage({ type: Type.RESET }));
    link.close();
  }

  onDown(link: Link, reason: string): void {
    this.sessions.get(link)?.down(reason);
  }

  /** Somebody left: whoever it was is found out by sending to all, in bursts, so that 10,000 sessions stall nothing. */
  onSuspect(): void {
    if (this.sweep !== undefined) {
      this.sweepAgain = true;
      return;
    }
    this.sweep = this.sessions.values();
    this.onTimer();
  }

  onTimer(): void {
    const { timers } = this.options.context;
    for (let count = 0; count < PING_BURST; count++) {
      const next = this.sweep?.next();
      if (next === undefined || next.done) {
        this.sweep = this.sweepAgain ? this.sessions.values() : undefined;
        this.sweepAgain = false;
        break;
      }
      next.value.ping();
    }
    if (this.sweep !== undefined) timers.start(this.sweepTimer, PING_PAUSE);
  }

  onStepEnd(): void {
    this.options.context.flusher.release();
  }

  /** From now on every HELLO is refused with SHUTTING_DOWN. */
  refuseNew(): void {
    this.stopping = true;
  }

  /** Ends every session with BYE. */
  close(code: 'SHUTTING_DOWN' | 'CLOSED' = 'SHUTTING_DOWN'): void {
    this.stopping = true;
    this.sweep = undefined;
    this.options.context.timers.stop(this.sweepTimer);
    for (const session of [...this.sessions.values()]) session.close(code, '', true);
  }
}

function isId(bytes: Uint8Array): boolean {
  return bytes.length > 0 && bytes.length <= MAX_ID;
}
