import { TrunklineError } from './errors.js';
import { Type } from './header.js';
import { HANDSHAKE_REFUSED, type Link, type LinkEvents, type Log, type Transport } from './ports.js';
import { Session } from './session.js';
import type { SessionContext, SessionEvents } from './session-types.js';
import { Timer, type TimerOwner } from './timers.js';

/** What a connection carries: the subscriber's side, the provider's side, or both (rule 13). */
export interface Role {
  /** A session is open; a role that was added later hears of the current one at once. */
  onOpen(session: Session): void;
  /** Returns whether the message is this role's business. */
  onControl(session: Session, type: number, batch: Uint8Array, at: number): boolean;
  onData(session: Session, batch: Uint8Array, start: number, end: number, count: number): boolean;
  onCredit(session: Session): void;
  /** The session ended; `final`: there will be no other. */
  onLost(reason: TrunklineError, final: boolean): void;
  /** HANDSHAKE_REFUSED by every address, and nobody waits for `ready`. It is tried on, slowly; told once per series. */
  onRefused?(error: TrunklineError): void;
}

export interface ConnectionOptions {
  readonly context: SessionContext;
  readonly transport: Transport;
  /** Tried in order, again and again. */
  readonly addresses: readonly string[];
  /** Credentials; a function is asked anew for each session. */
  readonly token?: string | (() => string);
  readonly log: Log;
  /** How long one address is tried before the next, ms; a single one is dialled anew after `PATIENCE` times as long. */
  readonly attempt?: number;
  /** Gives back what was made for this connection alone, its transport. */
  readonly dispose?: () => Promise<void>;
  /** Most of the random wait before HELLO after a connection came back, ms: not all peers at one moment (rule 11). */
  readonly jitter?: number;
}

/** A session that stood for this long, ms, shows that the peer is well: what failed before it counts no more. */
const STEADY = 1000;
const PATIENCE = 5;

export type ConnectionState = 'connecting' | 'open' | 'closed';

/**
 * The dialling end: keeps one session with the first address that answers, for as long as it is not closed. Every
 * role hears of sessions as they come and go and does its own requesting again (rule 11).
 */
export class Connection implements TimerOwner {
  state: ConnectionState = 'connecting';
  session: Session | undefined;
  /** Why the connection is closed. */
  closedBy: TrunklineError | undefined;

  private readonly roles: Role[] = [];
  private readonly waiting = new Set<{ resolve(): void; reject(error: TrunklineError): void }>();
  private disposed: Promise<void> = Promise.resolve();
  private link: Link | undefined;
  private linkUp = false;
  private index = 0;
  /** Attempts and short sessions that failed in a row. */
  private failures = 0;
  private openedAt = 0;
  /** Addresses that refused the handshake since the last session. */
  private readonly refusedBy = new Set<string>();
  private readonly attemptTimer = new Timer(this);
  private readonly helloTimer = new Timer(this);
  private readonly events: SessionEvents;
  private readonly linkEvents: LinkEvents;

  constructor(private readonly options: ConnectionOptions) {
    if (options.addresses.length === 0) throw new TrunklineError('ADDRESS_INVALID', 'no address given');
    this.events = {
      onOpen: (session) => this.opened(session),
      onControl: (session, type, batch, at) => this.control(session, type, batch, at),
      onData: (session, batch, start, end, count) => this.data(session, batch, start, end, count),
      onCredit: (session) => {
        for (const role of [...this.roles]) role.onCredit(session);
      },
      onClosed: (session, reason) => this.sessionClosed(session, reason),
    };
    this.linkEvents = {
      onBatch: (link, batch) => this.receive(link, batch),
      onUp: (link) => this.up(link),
      onDown: (link, reason) => this.down(link, reason),
      onStepEnd: () => this.options.context.flusher.release(),
    };
    this.dial();
  }

  get address(): string {
    return this.options.addresses[this.index]!;
  }

  get context(): SessionContext {
    return this.options.context;
  }

  addRole(role: Role): void {
    this.roles.push(role);
    if (this.session?.state === 'open') role.onOpen(this.session);
  }

  /** The connection closes with its last role. Resolves when nothing of the role, or of the connection, is left. */
  removeRole(role: Role): Promise<void> {
    const at = this.roles.indexOf(role);
    if (at >= 0) this.roles.splice(at, 1);
    return this.roles.length === 0 ? this.close() : Promise.resolve();
  }

  /**
   * Resolves when a session is open.
   * @throws TrunklineError the reason the connection closed, HANDSHAKE_REFUSED (it is tried on all the same), ABORTED
   */
  ready(signal?: AbortSignal): Promise<void> {
    if (this.state === 'open') return Promise.resolve();
    if (this.state === 'closed') return Promise.reject(this.closedBy!);
    if (signal?.aborted) return Promise.reject(new TrunklineError('ABORTED', undefined, { cause: signal.reason }));
    return new Promise((resolve, reject) => {
      const abort = () => waiter.reject(new TrunklineError('ABORTED', undefined, { cause: signal?.reason }));
      const done = () => {
        this.waiting.delete(waiter);
        signal?.removeEventListener('abort', abort);
      };
      const waiter = {
        resolve: () => {
          done();
          resolve();
        },
        reject: (error: TrunklineError) => {
          done();
          reject(error);
        },
      };
      this.waiting.add(waiter);
      signal?.addEventListener('abort', abort);
    });
  }

  private dial(): void {
    this.linkUp = false;
    this.link = this.options.transport.dial(this.address, this.linkEvents);
    this.startAttempt();
  }

  /** The time for an address. A single one that is down is dialled by its transport; up and silent it may be dead, and neither end hears of it. */
  private startAttempt(): void {
    const { attempt = 2000, context } = this.options;
    if (!this.single) context.timers.start(this.attemptTimer, attempt);
    else if (this.linkUp) context.timers.start(this.attemptTimer, attempt * PATIENCE);
  }

  private get single(): boolean {
    return this.options.addresses.length === 1;
  }

  private up(link: Link): void {
    if (link !== this.link || this.state === 'closed') return;
    this.linkUp = true;
    if (this.single && this.state === 'connecting') this.startAttempt();
    if (this.session === undefined) this.helloSoon();
    else this.session.ping();
  }

  private down(link: Link, reason: string): void {
    if (link !== this.link || this.state === 'closed') return;
    this.linkUp = false;
    this.options.context.timers.stop(this.helloTimer);
    if (this.single) this.options.context.timers.stop(this.attemptTimer);
    this.options.log.debug({ address: this.address, reason }, 'link down');
    this.lastDown = reason;
    this.session?.down(reason);
    if (reason === HANDSHAKE_REFUSED) this.refused();
  }

  /** Wrong keys look like a dead peer to whoever only waits (F43): it is told once every address was asked. */
  private refused(): void {
    const { addresses, log } = this.options;
    this.refusedBy.add(this.address);
    log.warn({ address: this.address }, 'the handshake was refused');
    if (this.refusedBy.size < new Set(addresses).size) {
      this.nextAddress();
      return;
    }
    const error = new TrunklineError('HANDSHAKE_REFUSED', `the handshake was refused by ${addresses.join(', ')}`);
    const waiting = [...this.waiting];
    for (const waiter of waiting) waiter.reject(error);
    if (waiting.length === 0) for (const role of [...this.roles]) role.onRefused?.(error);
  }

  /** What the transport last said about a link that is down, for people. */
  lastDown = '';

  /** At once the first time; after a loss with a random wait that grows with failures. */
  private helloSoon(): void {
    const { timers, random } = this.options.context;
    if (this.failures === 0) {
      this.begin();
      return;
    }
    const most = (this.options.jitter ?? 100) * Math.min(32, 2 ** (this.failures - 1));
    timers.start(this.helloTimer, random.next() * most);
  }

  private begin(): void {
    if (this.session !== undefined || this.link === undefined || this.state === 'closed') return;
    // assigned before HELLO leaves: a simulated link may answer within the call
    const { context, token = '' } = this.options;
    const shown = typeof token === 'function' ? token() : token;
    this.session = new Session(this.link, context, this.events, context.random.bytes(8), shown);
    this.session.hello();
  }

  onTimer(timer: Timer): void {
    if (timer === this.helloTimer) {
      this.begin();
      return;
    }
    if (this.state !== 'connecting') return;
    this.nextAddress();
  }

  private nextAddress(): void {
    const { addresses, context } = this.options;
    context.timers.stop(this.helloTimer);
    const { session, link } = this;
    this.session = undefined;
    this.link = undefined;
    session?.lost('no answer');
    link?.close();
    this.index = (this.index + 1) % addresses.length;
    this.dial();
  }

  private receive(link: Link, batch: Uint8Array): void {
    if (link !== this.link) return;
    this.options.context.flusher.hold();
    this.session?.receive(batch);
  }

  private opened(session: Session): void {
    if (this.session !== session) return;
    this.state = 'open';
    this.openedAt = this.options.context.clock.now();
    this.refusedBy.clear();
    this.options.context.timers.stop(this.attemptTimer);
    this.options.log.info({ address: this.address, peer: session.peer.name }, 'connected');
    for (const role of [...this.roles]) if (session.state === 'open') role.onOpen(session);
    for (const waiter of [...this.waiting]) waiter.resolve();
  }

  private control(session: Session, type: number, batch: Uint8Array, at: number): void {
    for (const role of this.roles) if (role.onControl(session, type, batch, at)) return;
    if (type !== Type.RESET) session.countFault('unexpected');
  }

  private data(session: Session, batch: Uint8Array, start: number, end: number, count: number): void {
    for (const role of this.roles) if (role.onData(session, batch, start, end, count)) return;
    session.consume(end - start);
  }

  private sessionClosed(session: Session, reason: TrunklineError): void {
    if (this.session !== session || this.state === 'closed') return;
    this.session = undefined;
    const wasOpen = this.state === 'open';
    // a loss is worth another try; a peer that said why it will not have us is final unless it says otherwise
    const final = !reason.retryable;
    if (wasOpen || final) this.options.log.info({ address: this.address, reason: reason.message }, 'disconnected');
    if (final) {
      this.finish(reason);
      return;
    }
    this.state = 'connecting';
    this.countFailure(wasOpen, reason);
    if (wasOpen) {
      for (const role of [...this.roles]) role.onLost(reason, false);
      if (this.closedBy !== undefined) return;
      this.startAttempt();
    } else if (!this.single && this.linkUp) {
      // it is there and refuses: another one may not
      this.nextAddress();
      return;
    }
    if (this.linkUp && this.session === undefined) this.helloSoon();
  }

  /** A RESET costs one round trip the first time; one after the other they are a loop, and wait longer and longer. */
  private countFailure(wasOpen: boolean, reason: TrunklineError): void {
    const steady = wasOpen && this.options.context.clock.now() - this.openedAt >= STEADY;
    if (steady) this.failures = 0;
    if (!steady || !this.linkUp || reason.code !== 'SESSION_LOST') this.failures++;
  }

  private finish(reason: TrunklineError): void {
    if (this.state === 'closed') return;
    this.state = 'closed';
    this.closedBy = reason;
    const { timers } = this.options.context;
    timers.stop(this.attemptTimer);
    timers.stop(this.helloTimer);
    this.link?.close();
    this.link = undefined;
    this.session = undefined;
    // first of all: a role that closes the connection from within `onLost` waits for it too
    this.disposed = this.options.dispose?.() ?? Promise.resolve();
    for (const role of [...this.roles]) role.onLost(reason, true);
    for (const waiter of [...this.waiting]) waiter.reject(reason);
  }

  /** Says BYE and stops. Always resolves, in every state, once the transport has let go too. */
  close(reason = new TrunklineError('CLOSED')): Promise<void> {
    if (this.state !== 'closed') {
      const { session } = this;
      this.session = undefined;
      session?.close('CLOSED');
      this.finish(reason);
    }
    return this.disposed;
  }
}
