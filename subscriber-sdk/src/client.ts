import {
  type Connection,
  encodeMessage,
  encodeParams,
  FIRST_APPLICATION_TYPE,
  type Log,
  type Meta,
  OFFSET,
  type Role,
  readU32,
  type Session,
  silentLog,
  TrunklineError,
  Type,
} from '@trunkline/proto';
import { Calls } from './calls.js';
import { ConsumerTable } from './consumer-table.js';
import type { Consumption, QueueHandler } from './consumption.js';
import type { MessageHandler } from './delivery.js';
import { Events } from './events.js';
import { hold, Message, release, settle } from './message.js';
import type { ConsumeOptions, RequestOptions, SubscribeOptions } from './options.js';
import { checkSignal, consumeFields, integer, requestFields } from './options.js';
import { QueueAdmin } from './queue-admin.js';
import { Sender } from './sender.js';
import { inputOf, Subscription } from './subscription.js';
import { SubscriptionTable } from './table.js';
import { attachTask, type Task } from './task.js';

export type ClientState = 'connected' | 'disconnected' | 'closed';

export interface ClientEvents {
  /** The reason goes with `disconnected` and `closed`. */
  state: readonly [state: ClientState, reason: TrunklineError | undefined];
  /** A message of type 128..255; its bytes are given back when the listeners are done. */
  application: readonly [message: Message];
  error: readonly [error: TrunklineError];
}

export interface ClientOptions {
  readonly log?: Log;
}

const clients = new WeakMap<Connection, Client>();

/**
 * The subscriber's side of a connection. Subscriptions outlive sessions: they are requested again by
 * themselves when one begins (rule 11). A connection has one client at a time.
 */
export class Client extends Events<ClientEvents> implements AsyncDisposable {
  #state: ClientState = 'disconnected';
  #closed: Promise<void> | undefined;
  #reason: TrunklineError | undefined;
  readonly #table: SubscriptionTable;
  readonly #consumers: ConsumerTable;
  readonly #calls: Calls;
  readonly #sender = new Sender();
  /** The queues of the dispatcher: declares, shows and changes them. */
  readonly queues = new QueueAdmin((code, options) => this.request(code, options));
  readonly #role: Role;

  /** @throws TrunklineError HANDLER_EXISTS: the connection has a client; CLOSED: it is closed */
  constructor(
    /** Give it to the publisher SDK to provide over the same connection (rule 13). */
    readonly connection: Connection,
    options: ClientOptions = {},
  ) {
    super(options.log ?? silentLog);
    if (connection.state === 'closed') throw new TrunklineError('CLOSED', undefined, { cause: connection.closedBy });
    if (clients.has(connection)) throw new TrunklineError('HANDLER_EXISTS', 'the connection has a client already');
    clients.set(connection, this);
    this.#table = new SubscriptionTable();
    const table = this.#table;
    this.#consumers = new ConsumerTable(
      connection.context,
      this.log,
      () => table.reserve(),
      (request) => table.release(request),
    );
    this.#calls = new Calls(connection.context, (code, more, handler) => this.#subscribe(code, more, handler));
    this.#role = {
      onOpen: (session) => this.#opened(session),
      onControl: (session, type, batch, at) =>
        this.#consumers.control(session, type, batch, at) || this.#table.control(session, type, batch, at),
      onData: (session, batch, start, end) => this.#data(session, batch, start, end),
      onCredit: (session) => this.#sender.credit(session),
      onLost: (reason, final) => this.#lost(reason, final),
      onRefused: (error) => this.report(error),
    };
    connection.addRole(this.#role);
  }

  get state(): ClientState {
    return this.#state;
  }

  /** What the client holds, for tests and for watching it: all zero when nothing is subscribed. */
  get counts(): { subscriptions: number; lines: number; calls: number; sends: number } {
    return {
      subscriptions: this.#table.size,
      lines: this.#table.lineCount,
      calls: this.#calls.size,
      sends: this.#sender.size,
    };
  }

  /**
   * Asks for a service. Returns at once; `accepted` tells the answer. May be called in every state but closed.
   * @throws TrunklineError CLOSED, OPTION_INVALID, PARAMS_INVALID, ABORTED
   */
  subscribe(code: number, options: SubscribeOptions = {}, handler?: MessageHandler): Subscription {
    this.#assertOpen();
    return this.#subscribe(code, options, handler);
  }

  #subscribe(code: number, options: SubscribeOptions, handler: MessageHandler | undefined): Subscription {
    const fields = requestFields(code, options);
    if (handler !== undefined && typeof handler !== 'function') {
      throw new TrunklineError('OPTION_INVALID', 'the handler must be a function');
    }
    const { signal, ordered = true } = options;
    const entry = this.#table.add(fields, this.log);
    const subscription = new Subscription(code, options.params, handler, ordered, entry);
    entry.attach(inputOf(subscription), signal);
    this.#table.send(entry);
    return subscription;
  }

  /**
   * Reads a queue, alone or as a member of a group. Returns at once; `accepted` tells the answer. May be called in
   * every state but closed. Without a handler the consumption is read by a `for await` loop.
   * @throws TrunklineError CLOSED, OPTION_INVALID, ABORTED
   */
  consume(code: number, options: ConsumeOptions = {}, handler?: QueueHandler): Consumption {
    this.#assertOpen();
    if (handler !== undefined && typeof handler !== 'function') {
      throw new TrunklineError('OPTION_INVALID', 'the handler must be a function');
    }
    const consumption = this.#consumers.add(consumeFields(code, options), handler);
    const { signal } = options;
    if (signal !== undefined) {
      const abort = () => void consumption.close();
      signal.addEventListener('abort', abort);
      consumption.on('state', (state) => {
        if (state === 'ended') signal.removeEventListener('abort', abort);
      });
    }
    return consumption;
  }

  /**
   * The first final response (rule 10). Concurrent identical requests share one. After a lost session it is asked again.
   * @throws TrunklineError what it was refused with, how the stream ended before, TIMEOUT, ABORTED, CLOSED,
   * OPTION_INVALID, PARAMS_INVALID
   */
  async request(code: number, options: RequestOptions = {}): Promise<Message> {
    this.#assertOpen();
    return this.#calls.request(code, encodeParams(options.params), options);
  }

  /** Subscribes for a task object. @throws TrunklineError as `subscribe` */
  run(task: Task): Subscription {
    this.#assertOpen();
    if (typeof task?.onMessage !== 'function') throw new TrunklineError('OPTION_INVALID', 'a task has onMessage');
    const options = task.params === undefined ? { ...task.options } : { ...task.options, params: task.params };
    const subscription = this.#subscribe(task.code, options, (message) => task.onMessage(message));
    attachTask(subscription, task);
    return subscription;
  }

  /**
   * Sends a message of an application type; resolves when it was handed over, after waiting for credit if need be.
   * @param type 128..255
   * @param body nothing, bytes, a string (UTF-8) or anything else (JSON)
   * @throws TrunklineError CLOSED, DISCONNECTED, OPTION_INVALID, META_INVALID, BODY_INVALID, MESSAGE_TOO_LARGE,
   * LIMIT_EXCEEDED, ABORTED: it was not sent
   */
  async send(
    type: number,
    code: number,
    body?: unknown,
    meta?: Partial<Meta>,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<void> {
    this.#assertOpen();
    integer('type', type, FIRST_APPLICATION_TYPE, 255);
    integer('code', code, 0, 0xffffffff);
    checkSignal(options.signal);
    await this.#sender.send(encodeMessage({ type, code }, body, meta), options.signal);
  }

  /**
   * Ends all subscriptions and calls with CLOSED, and the connection if no other role uses it. Always resolves, in every
   * state, and leaves nothing that keeps the process alive (F27, F28).
   */
  close(): Promise<void> {
    if (this.#state !== 'closed') this.#finish(new TrunklineError('CLOSED'), false);
    return this.#closed!;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #assertOpen(): void {
    if (this.#state === 'closed') throw new TrunklineError('CLOSED', undefined, { cause: this.#reason });
  }

  #opened(session: Session): void {
    this.#sender.open(session);
    this.#table.open(session);
    this.#consumers.open(session);
    this.#move('connected', undefined);
  }

  #lost(reason: TrunklineError, final: boolean): void {
    if (final) {
      this.#finish(reason, true);
      return;
    }
    this.#sender.lost(new TrunklineError('DISCONNECTED', undefined, { retryable: true, cause: reason }));
    this.#table.lost(reason.message);
    this.#consumers.lost();
    this.#move('disconnected', reason);
  }

  /** `failed`: it was not this process that closed it. */
  #finish(reason: TrunklineError, failed: boolean): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#reason = reason;
    clients.delete(this.connection);
    this.#consumers.flush();
    // a final loss comes from inside of the connection's own closing; otherwise BYE makes a CANCEL for each needless
    const removed = failed
      ? Promise.resolve().then(() => this.connection.removeRole(this.#role))
      : this.connection.removeRole(this.#role);
    this.#sender.lost(reason);
    this.#table.close(reason, failed);
    this.#consumers.close(reason, failed);
    this.#closed = removed.catch((error) => this.log.error({ error: String(error) }, 'closing the transport failed'));
    this.emit('state', 'closed', reason);
  }

  #move(state: ClientState, reason: TrunklineError | undefined): void {
    if (this.#state === state || this.#state === 'closed') return;
    this.#state = state;
    this.emit('state', state, reason);
  }

  #data(session: Session, batch: Uint8Array, start: number, end: number): boolean {
    const type = batch[start + OFFSET.type]!;
    if (type === Type.RESPONSE) {
      return this.#consumers.data(batch, start, end) || this.#table.data(session, batch, start, end);
    }
    if (type < FIRST_APPLICATION_TYPE || !this.has('application')) return false;
    for (let at = start; at < end; at += readU32(batch, at)) {
      const message = new Message(session, batch, at);
      const pending = this.settle('application', message);
      if (pending !== undefined) {
        hold(message);
        pending.then(() => release(message));
      }
      if (settle(message)) session.consume(message.length);
    }
    return true;
  }
}
