import { type ErrorCode, keyBytes, type Log, TrunklineError } from '@trunkline/proto';
import { Delivery, type MessageHandler } from './delivery.js';
import { Events } from './events.js';
import type { MessageIterator } from './iterator.js';
import type { Message } from './message.js';
import { aborted } from './options.js';

export type SubscriptionState = 'pending' | 'live' | 'stale' | 'disconnected' | 'ended';

/** Rule 7: what is known of the source. `disconnected` is this process's own session with the dispatcher. */
export interface StatusEvent {
  readonly state: 'live' | 'stale' | 'disconnected';
  readonly reason: string;
  /** Of the upstream subscription; a new one begins a new history of the source. */
  readonly generation: number;
}

/** Responses that will not come. */
export interface GapEvent {
  /** How many; 0: unknown. */
  readonly count: number;
  /** Sequence of the first and the last, 0: unknown. */
  readonly first: number;
  readonly last: number;
  readonly reason: string;
}

/** How a subscription ended; comes once, however it ended. */
export interface EndEvent {
  /** COMPLETED or EXITED from the source; CLOSED or ABORTED from this process; anything else is a failure. */
  readonly code: ErrorCode;
  readonly message: string;
  /** Exit code of the command behind the stream, where there was one. */
  readonly exit: number | undefined;
  readonly retryable: boolean;
}

export interface AcceptedEvent {
  /** Last sequence of the stream so far. */
  readonly sequence: number;
  readonly epoch: Uint8Array;
  readonly generation: number;
  /** Kept responses follow. */
  readonly snapshot: boolean;
  /** A start `after` joined its history without a hole. */
  readonly resumed: boolean;
}

/** As the event, but for the epoch: one character a byte, which takes a tenth of the memory. */
export interface Accepted extends Omit<AcceptedEvent, 'epoch'> {
  readonly epoch: string;
}

export interface SubscriptionEvents {
  message: readonly [message: Message];
  status: readonly [status: StatusEvent];
  gap: readonly [gap: GapEvent];
  end: readonly [end: EndEvent];
  error: readonly [error: TrunklineError];
  accepted: readonly [accepted: AcceptedEvent];
}

/** What the dispatcher says to one subscription. */
export interface SubscriptionInput {
  accepted(answer: Accepted, state: 'live' | 'stale'): void;
  message(message: Message, sequence: number, generation: number): void;
  status(state: 'live' | 'stale', reason: string, generation: number): void;
  gap(gap: GapEvent): void;
  disconnected(reason: string): void;
  refused(error: TrunklineError): void;
  ended(error: TrunklineError): void;
  /** This process itself ends it: what waits is dropped. `failed`: a loop over it throws the error. */
  dropped(error: TrunklineError, failed: boolean): void;
}

interface Waiter {
  resolve(): void;
  reject(error: TrunklineError): void;
}

const NEVER = () => {};

class Acceptance implements Waiter {
  resolve: () => void = NEVER;
  reject: (error: TrunklineError) => void = NEVER;
  readonly promise = new Promise<void>((resolve, reject) => {
    this.resolve = resolve;
    this.reject = reject;
  });
}

/** Of what has arrived. Kept where a message comes along: each further object costs time where there are many. */
interface Position {
  sequence: number;
  generation: number;
}

export interface SubscriptionOwner {
  readonly log: Log;
  /** Takes the subscription out of the table and tells the dispatcher. */
  leave(): void;
  /** No handler is called any more. */
  ended(): void;
}

const moves: Record<SubscriptionState, readonly SubscriptionState[]> = {
  pending: ['live', 'stale', 'disconnected', 'ended'],
  live: ['stale', 'disconnected', 'ended'],
  stale: ['live', 'disconnected', 'ended'],
  disconnected: ['live', 'stale', 'ended'],
  ended: [],
};

/** Gives the client, and nobody else, the inside of a subscription. */
export let inputOf: (subscription: Subscription) => SubscriptionInput;

/**
 * One request of this process, until it ends. Messages go to the handler, to `message` listeners and to `for await`
 * loops; until there is one of these they wait, and count against the credit of the whole client. Events keep their
 * order among the messages; `state`, `sequence`, `generation` and `epoch` are those of what has arrived.
 */
export class Subscription extends Events<SubscriptionEvents> implements AsyncIterable<Message>, AsyncDisposable {
  #state: SubscriptionState = 'pending';
  #epoch = '';
  #accepted = false;
  #unsubscribed = false;
  #error: TrunklineError | undefined;
  /** The `end` event that was not emitted yet. */
  #ending: EndEvent | undefined;
  /** What `accepted` gave, as long as it is not settled: one for all without a signal, one for each with. */
  #acceptance: Acceptance | undefined;
  #waiting: Set<Waiter> | undefined;
  readonly #owner: SubscriptionOwner;
  /** What the client and the delivery of its messages see of it. */
  readonly #inside: SubscriptionInput & Delivery & Position;

  /** Made by `client.subscribe`. */
  constructor(
    readonly code: number,
    /** As they were given. */
    readonly params: unknown,
    handler: MessageHandler | undefined,
    ordered: boolean,
    owner: SubscriptionOwner,
  ) {
    super(owner.log);
    this.#owner = owner;
    this.#inside = new Subscription.#Inside(this, handler, ordered);
  }

  static {
    inputOf = (subscription) => subscription.#inside;
  }

  get state(): SubscriptionState {
    return this.#state;
  }

  /** Of the upstream subscription; 0 before the first answer. */
  get generation(): number {
    return this.#inside.generation;
  }

  /** Of the last response that arrived; before one, of the stream when it was joined. */
  get sequence(): number {
    return this.#inside.sequence;
  }

  /** Goes with `sequence`; empty before the first answer (rule 9). */
  get epoch(): Uint8Array {
    return keyBytes(this.#epoch);
  }

  override on<Name extends keyof SubscriptionEvents>(
    name: Name,
    listener: (...args: SubscriptionEvents[Name]) => unknown,
  ): () => void {
    const off = super.on(name, listener);
    if (name === 'message') this.#inside.listened();
    return off;
  }

  /**
   * Resolves once the dispatcher has accepted the request, at once if it has already.
   * @throws TrunklineError what it was refused with, how it ended before, ABORTED
   */
  accepted(signal?: AbortSignal): Promise<void> {
    if (this.#accepted) return Promise.resolve();
    if (this.#error !== undefined) return Promise.reject(this.#error);
    if (signal !== undefined) return this.#acceptedWithin(signal);
    this.#acceptance ??= new Acceptance();
    return this.#acceptance.promise;
  }

  #acceptedWithin(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(aborted(signal));
    return new Promise((resolve, reject) => {
      const abort = () => waiter.reject(aborted(signal));
      const done = () => {
        this.#waiting?.delete(waiter);
        signal.removeEventListener('abort', abort);
      };
      const waiter: Waiter = {
        resolve: () => {
          done();
          resolve();
        },
        reject: (error) => {
          done();
          reject(error);
        },
      };
      this.#waiting ??= new Set();
      this.#waiting.add(waiter);
      signal.addEventListener('abort', abort);
    });
  }

  /**
   * Ends the subscription; after the call no handler is called any more (rule 8). Also right after it has ended by
   * itself, and after a loop was left.
   * @throws TrunklineError NOT_SUBSCRIBED: it was called before (F14)
   */
  unsubscribe(): Promise<void> {
    if (this.#unsubscribed) return Promise.reject(new TrunklineError('NOT_SUBSCRIBED'));
    this.#unsubscribed = true;
    this.#drop(new TrunklineError('CLOSED', 'unsubscribed'), false);
    return Promise.resolve();
  }

  /** As `unsubscribe`, and does nothing after it. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#unsubscribed ? Promise.resolve() : this.unsubscribe();
  }

  /**
   * Loops over the messages. The loop ends with the stream and with `unsubscribe`, and throws what else ended it. Leaving
   * the loop unsubscribes, unless there are a handler, listeners or other loops.
   */
  [Symbol.asyncIterator](): MessageIterator {
    return this.#inside.iterate();
  }

  #onAccepted(answer: Accepted, state: 'live' | 'stale'): void {
    this.#accepted = true;
    const inside = this.#inside;
    inside.generation = answer.generation;
    if (!answer.snapshot) inside.sequence = answer.sequence;
    // a sequence of another history means nothing in this one
    else if (answer.epoch !== this.#epoch) inside.sequence = 0;
    this.#epoch = answer.epoch;
    this.#acceptance?.resolve();
    this.#acceptance = undefined;
    if (this.#waiting !== undefined) for (const waiter of [...this.#waiting]) waiter.resolve();
    if (!this.#unheard('accepted')) {
      this.#inside.event(() => this.emit('accepted', { ...answer, epoch: keyBytes(answer.epoch) }));
    }
    if (this.#state !== state && this.#state !== 'ended') this.#status(state, '');
  }

  #onRefused(error: TrunklineError): void {
    if (this.#state === 'ended') return;
    this.#end(error);
    this.#inside.complete(error, () => {
      this.report(error);
      this.#emitEnd();
    });
  }

  #onEnded(error: TrunklineError): void {
    if (this.#state === 'ended') return;
    this.#end(error);
    const normal = error.code === 'COMPLETED' || (error.code === 'EXITED' && (error.exit ?? 0) === 0);
    this.#inside.complete(normal ? undefined : error, () => {
      if (!this.#emitEnd() && !normal) this.log.warn({ code: error.code, service: this.code }, error.message);
    });
  }

  /** The inside of a subscription, for the client and for its delivery. */
  static readonly #Inside = class extends Delivery implements SubscriptionInput, Position {
    sequence = 0;
    generation = 0;

    constructor(
      private readonly subscription: Subscription,
      handler: MessageHandler | undefined,
      ordered: boolean,
    ) {
      super(handler, ordered);
    }

    accepted(answer: Accepted, state: 'live' | 'stale'): void {
      this.subscription.#onAccepted(answer, state);
    }

    message(message: Message, sequence: number, generation: number): void {
      this.sequence = sequence;
      this.generation = generation;
      this.deliver(message);
    }

    status(state: 'live' | 'stale', reason: string, generation: number): void {
      this.generation = generation;
      this.subscription.#status(state, reason);
    }

    gap(gap: GapEvent): void {
      const { subscription } = this;
      this.event(() => subscription.emit('gap', gap));
    }

    disconnected(reason: string): void {
      if (this.subscription.#state !== 'disconnected') this.subscription.#status('disconnected', reason);
    }

    refused(error: TrunklineError): void {
      this.subscription.#onRefused(error);
    }

    ended(error: TrunklineError): void {
      this.subscription.#onEnded(error);
    }

    dropped(error: TrunklineError, failed: boolean): void {
      this.subscription.#drop(error, failed);
    }

    hasListeners(): boolean {
      return this.subscription.has('message');
    }

    callListeners(message: Message): Promise<unknown> | undefined {
      return this.subscription.settle('message', message);
    }

    handlerFailed(error: unknown): void {
      this.subscription.failed(error, 'message');
    }

    abandoned(): void {
      this.subscription.#drop(new TrunklineError('CLOSED', 'the loop was left'), false);
    }
  };

  #status(state: 'live' | 'stale' | 'disconnected', reason: string): void {
    if (this.#state !== state) this.#move(state);
    if (this.#unheard('status')) return;
    const event: StatusEvent = { state, reason, generation: this.#inside.generation };
    this.#inside.event(() => this.emit('status', event));
  }

  /** The event would be told now, and nobody listens. */
  #unheard(name: keyof SubscriptionEvents): boolean {
    return this.#inside.immediate && !this.has(name);
  }

  #move(next: SubscriptionState): void {
    if (!moves[this.#state].includes(next)) {
      throw new TrunklineError('STATE_INVALID', `subscription: ${this.#state} to ${next}`);
    }
    this.#state = next;
  }

  #end(error: TrunklineError): void {
    this.#move('ended');
    this.#error = error;
    this.#ending = { code: error.code, message: error.message, exit: error.exit, retryable: error.retryable };
    this.#owner.leave();
    this.#acceptance?.reject(error);
    this.#acceptance = undefined;
    if (this.#waiting !== undefined) for (const waiter of [...this.#waiting]) waiter.reject(error);
  }

  /** Returns whether anybody heard it, or had heard it before. */
  #emitEnd(): boolean {
    this.#owner.ended();
    const event = this.#ending;
    this.#ending = undefined;
    return event === undefined || this.emit('end', event);
  }

  #drop(error: TrunklineError, failed: boolean): void {
    if (this.#state !== 'ended') this.#end(error);
    this.#inside.stop(failed ? error : undefined);
    this.#emitEnd();
  }
}
