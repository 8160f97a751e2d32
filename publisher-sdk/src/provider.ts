import {
  type Connection,
  type DataMessage,
  Emitter,
  FIRST_APPLICATION_TYPE,
  type Log,
  type Meta,
  type payload,
  type Role,
  type Session,
  type SessionContext,
  SessionHost,
  silentLog,
  TrunklineError,
  Type,
} from '@trunkline/proto';
import { ProviderSession, type ProviderSide, type Reply } from './provider-session.js';
import type { PublishMessage } from './publish-many.js';
import type { PublishOptions } from './publish-options.js';
import { Publishing } from './publishing.js';
import { type Codes, type Registration, Registrations } from './registrations.js';
import type { Handler } from './subscription.js';

export type ProviderState = 'disconnected' | 'connected' | 'closed';
const moves: Record<ProviderState, readonly ProviderState[]> = {
  disconnected: ['connected', 'closed'],
  connected: ['disconnected', 'closed'],
  closed: [],
};

export interface ProviderEvents {
  state: [state: ProviderState];
  /** A handler or listener failed, or an offer was refused. Where nobody listens it is logged. */
  error: [error: TrunklineError];
  /** A message of one of the application's own types, 128..255. It counts as consumed when all listeners are done. */
  application: [message: DataMessage, reply: Reply];
}

export interface ProviderOptions {
  readonly log?: Log;
  /** Gives back what was made for this provider alone. */
  readonly dispose?: () => Promise<void>;
}

export interface HostOptions {
  /** Most dispatchers at one time. Default 64. */
  readonly maxSessions?: number;
  /** Says why a HELLO is refused, or undefined. */
  readonly authenticate?: (hello: payload.Hello) => TrunklineError | undefined;
}

/** What `provide` returns. */
export interface Provided extends AsyncDisposable {
  readonly from: number;
  readonly to: number;
  /**
   * Takes the offer back and ends what the handler has running; the functions it gave for that are called before this
   * returns, what they wait for is not awaited. Does nothing the second time.
   */
  withdraw(): Promise<void>;
}

/** Connections that have a provider: a second one would never be asked for anything. */
const taken = new WeakSet<Connection>();

/**
 * Answers requests for service codes. Free of any runtime: it is given a connection (`attach`) or makes a host for
 * links that dispatchers open (`host`).
 */
export class Provider implements AsyncDisposable {
  state: ProviderState = 'disconnected';
  /** Why it is closed. */
  closedBy: TrunklineError | undefined;
  /** What a provider that dials in shares with other roles of the process (rule 13). */
  connection: Connection | undefined;
  /** Where a bound provider listens. */
  address: string | undefined;
  /** Subscriptions that run now, of all codes. */
  subscriptions = 0;

  private readonly registrations = new Registrations();
  private readonly publishing = new Publishing();
  private readonly sessions = new Map<Session, ProviderSession>();
  private readonly counts = new Map<number, number>();
  private readonly events: Emitter<ProviderEvents>;
  private readonly side: ProviderSide;
  private readonly log: Log;
  private readonly disposals: (() => Promise<void>)[] = [];
  private closing: Promise<void> | undefined;

  constructor(options: ProviderOptions = {}) {
    this.log = options.log ?? silentLog;
    if (options.dispose !== undefined) this.disposals.push(options.dispose);
    this.events = new Emitter<ProviderEvents>((cause, name) => this.listenerFailed(cause, name));
    const { events } = this;
    this.side = {
      find: (code) => this.registrations.find(code),
      report: (error) => this.report(error),
      counted: (code, change) => this.counted(code, change),
      get listening() {
        return events.has('application');
      },
      application: (message, reply) => events.settle('application', message, reply),
    };
  }

  // ---- what it offers ----

  /**
   * Offers a code, or a range of codes, to every dispatcher that is there or comes. The narrowest range wins.
   * @throws TrunklineError OPTION_INVALID, HANDLER_EXISTS, CLOSED
   */
  provide(codes: Codes, handler: Handler): Provided {
    if (this.state === 'closed') throw new TrunklineError('CLOSED');
    const registration = this.registrations.add(codes, handler);
    for (const session of this.sessions.values()) session.offer([registration]);
    const { from, to } = registration;
    const withdraw = async () => this.withdraw(registration);
    return { from, to, withdraw, [Symbol.asyncDispose]: withdraw };
  }

  private withdraw(registration: Registration): void {
    if (!this.registrations.remove(registration)) return;
    const reason = new TrunklineError('CLOSED', 'the handler was withdrawn');
    for (const session of this.sessions.values()) session.withdraw(registration, reason);
  }

  /** Subscriptions of one code that run now. */
  subscriptionsOf(code: number): number {
    return this.counts.get(code) ?? 0;
  }

  private counted(code: number, change: 1 | -1): void {
    this.subscriptions += change;
    const count = this.subscriptionsOf(code) + change;
    if (count === 0) this.counts.delete(code);
    else this.counts.set(code, count);
  }

  // ---- queues ----

  /**
   * Publishes into a queue. Resolves with the message's sequence once it is stored: on disk, flushed. May be called in
   * every state but closed; what is not confirmed when a session ends is sent again in the next one and stored once.
   * @param body nothing, bytes, a string (UTF-8) or anything else (JSON)
   * @throws TrunklineError the code the queue refused it with (QUEUE_FULL, STORE_FULL, MESSAGE_TOO_LARGE,
   * UNKNOWN_SERVICE …: not stored); TIMEOUT, ABORTED, DISCONNECTED: it may have been stored, the message says;
   * LIMIT_EXCEEDED: 65,536 messages or 64 MiB are unconfirmed, wait for `drained`; META_INVALID, BODY_INVALID,
   * OPTION_INVALID, CLOSED: it was not taken
   */
  publish(code: number, body?: unknown, options: PublishOptions = {}): Promise<number> {
    try {
      this.assertPublishing();
      return this.publishing.publish(code, body, options);
    } catch (error) {
      // not `async`: by the hundred thousand, a second promise around the first one costs too much
      return Promise.reject(error);
    }
  }

  /**
   * Publishes several messages, one behind the other; resolves with their sequences once all are stored. However many
   * there are, they are taken as there is room, and `publish` has none until they are. `options` hold for all, what a
   * message says itself goes first.
   * @throws TrunklineError as `publish`, then none was taken; PublishManyError: some were not stored, with the
   * sequences of the others
   */
  async publishMany(
    code: number,
    messages: readonly PublishMessage[],
    options: PublishOptions = {},
  ): Promise<number[]> {
    this.assertPublishing();
    return this.publishing.publishMany(code, messages, options);
  }

  /**
   * Resolves when `publish` has room: at once while it has, otherwise when half of what it keeps is confirmed. Wait for
   * it before each publish where there may be many.
   * @throws TrunklineError CLOSED, or why the provider closed; DISCONNECTED: it has neither connection nor host
   */
  async drained(): Promise<void> {
    this.assertPublishing();
    await this.publishing.drained();
  }

  /** Messages that were published and not confirmed yet. */
  get unconfirmed(): number {
    return this.publishing.unconfirmed;
  }

  private assertPublishing(): void {
    if (this.state === 'closed') throw new TrunklineError('CLOSED', undefined, { cause: this.closedBy });
    if (!this.publishing.usable)
      throw new TrunklineError('DISCONNECTED', 'the provider has neither connection nor host');
  }

  // ---- the application's own messages ----

  /**
   * Sends a message of the application's own type, 128..255, to every dispatcher that is connected.
   * Returns false when one of them did not take it, or there is none.
   * @throws TrunklineError OPTION_INVALID, BODY_INVALID, META_INVALID, MESSAGE_TOO_LARGE
   */
  send(type: number, code: number, body?: unknown, meta: Partial<Meta> = {}): boolean {
    if (!Number.isInteger(type) || type < FIRST_APPLICATION_TYPE || type > 255) {
      throw new TrunklineError('OPTION_INVALID', `a type of the application is ${FIRST_APPLICATION_TYPE}..255`);
    }
    if (!Number.isInteger(code) || code < 0 || code > 0xffffffff) {
      throw new TrunklineError('OPTION_INVALID', `${code} is no service code`);
    }
    const about = { code, line: 0, generation: 0 };
    let taken = this.sessions.size > 0;
    for (const session of this.sessions.values()) {
      if (!session.write(type, about, 0, body, meta)) taken = false;
    }
    return taken;
  }

  /** Adds a listener; returns the way to take it away again. */
  on<Name extends keyof ProviderEvents>(name: Name, listener: (...args: ProviderEvents[Name]) => unknown): () => void {
    return this.events.on(name, listener);
  }

  off<Name extends keyof ProviderEvents>(name: Name, listener: (...args: ProviderEvents[Name]) => unknown): void {
    this.events.off(name, listener);
  }

  private report(error: TrunklineError): void {
    if (this.events.emit('error', error)) return;
    this.log.error({ code: error.code, error: error.message, cause: error.cause }, 'provider error');
  }

  private listenerFailed(cause: unknown, name: keyof ProviderEvents): void {
    // a listener for errors that fails is not told of itself
    if (name === 'error') this.log.error({ cause }, 'a listener for errors failed');
    else this.report(new TrunklineError('HANDLER_FAILED', `a listener for '${name}' failed`, { cause }));
  }

  // ---- sessions ----

  /** Joins a connection that dials in. @throws TrunklineError HANDLER_EXISTS: it has a provider already; CLOSED */
  attach(connection: Connection): void {
    if (this.state === 'closed') throw new TrunklineError('CLOSED');
    if (connection.state === 'closed') throw connection.closedBy ?? new TrunklineError('CLOSED');
    if (this.connection !== undefined || taken.has(connection)) {
      throw new TrunklineError('HANDLER_EXISTS', 'a connection has one provider, and a provider one connection');
    }
    taken.add(connection);
    this.connection = connection;
    this.publishing.use(connection.context);
    let current: Session | undefined;
    let welcomed = false;
    const role: Role = {
      onRefused: (error) => this.report(error),
      onOpen: (session) => {
        current = session;
        welcomed = true;
        this.opened(session);
      },
      onControl: (session, type, batch, at) => this.control(session, type, batch, at),
      onData: (session, batch, start, end) => this.data(session, batch, start, end),
      onCredit: (session) => this.credit(session),
      onLost: (reason, final) => {
        if (current !== undefined) this.lost(current, reason);
        current = undefined;
        if (!final) return;
        this.finish(reason);
        if (welcomed && reason.code !== 'CLOSED') this.report(reason);
      },
    };
    this.disposals.push(() => {
      taken.delete(connection);
      return connection.removeRole(role);
    });
    connection.addRole(role);
  }

  /** Takes links that dispatchers open: give it to a transport's `listen`. Closed with the provider. */
  host(context: SessionContext, options: HostOptions = {}): SessionHost {
    if (this.state === 'closed') throw new TrunklineError('CLOSED');
    this.publishing.use(context);
    const host = new SessionHost({
      context,
      maxSessions: options.maxSessions ?? 64,
      ...(options.authenticate === undefined ? {} : { authenticate: options.authenticate }),
      events: {
        onOpen: (session) => this.opened(session),
        onControl: (session, type, batch, at) => {
          if (!this.control(session, type, batch, at)) session.countFault('unexpected');
        },
        onData: (session, batch, start, end) => {
          if (this.data(session, batch, start, end)) return;
          session.countFault('unexpected');
          session.consume(end - start);
        },
        onCredit: (session) => this.credit(session),
        onClosed: (session, reason) => this.lost(session, reason),
      },
    });
    this.disposals.push(async () => host.close());
    return host;
  }

  private opened(session: Session): void {
    const provided = new ProviderSession(session, this.side);
    this.sessions.set(session, provided);
    provided.offer(this.registrations.all());
    this.publishing.open(session);
    if (this.state === 'disconnected') this.move('connected');
  }

  private credit(session: Session): void {
    const shared = this.sessions.get(session)?.onCredit() ?? false;
    // both may always have more to send than there is credit
    this.publishing.onCredit(session, shared ? session.credit / 2 : 0);
  }

  private control(session: Session, type: number, batch: Uint8Array, at: number): boolean {
    if (type === Type.PUBLISHED) return this.publishing.published(session, batch, at);
    return this.sessions.get(session)?.onControl(type, batch, at) ?? false;
  }

  private data(session: Session, batch: Uint8Array, start: number, end: number): boolean {
    return this.sessions.get(session)?.onData(batch, start, end) ?? false;
  }

  /** What a session asked for ends with it (rule 12); the next one asks again (rules 6 and 11). */
  private lost(session: Session, reason: TrunklineError): void {
    const provided = this.sessions.get(session);
    if (provided === undefined) return;
    this.sessions.delete(session);
    provided.finish(reason);
    this.publishing.lost(session);
    const [next] = this.sessions.keys();
    if (next !== undefined) this.publishing.open(next);
    if (this.sessions.size === 0 && this.state === 'connected') this.move('disconnected');
  }

  private move(next: ProviderState): void {
    if (!moves[this.state].includes(next)) {
      throw new TrunklineError('STATE_INVALID', `provider: ${this.state} to ${next}`);
    }
    this.state = next;
    this.events.emit('state', next);
  }

  // ---- the end ----

  private finish(reason: TrunklineError): void {
    if (this.state === 'closed') return;
    this.closedBy = reason;
    this.move('closed');
    for (const session of this.sessions.values()) session.finish(reason);
    this.publishing.close(reason);
  }

  /**
   * Ends all subscriptions, takes every offer back and leaves. Always resolves, in every state (F27), and nothing of
   * the provider keeps the process alive then (F28); a connection that others share stays open for them.
   */
  close(): Promise<void> {
    if (this.closing === undefined) {
      // assigned before anything happens: a listener may call close again
      let done: () => void = () => {};
      this.closing = new Promise((resolve) => {
        done = resolve;
      });
      this.leave().then(done);
    }
    return this.closing;
  }

  private async leave(): Promise<void> {
    this.finish(new TrunklineError('CLOSED'));
    for (const session of this.sessions.values()) session.offer(this.registrations.all(), Type.WITHDRAW);
    this.sessions.clear();
    for (const dispose of this.disposals.reverse()) {
      try {
        await dispose();
      } catch (cause) {
        this.log.error({ cause }, 'closing a provider failed');
      }
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
