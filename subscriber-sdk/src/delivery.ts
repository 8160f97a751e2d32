import { isThenable, type TrunklineError } from '@trunkline/proto';
import { Fifo } from './fifo.js';
import { MessageIterator } from './iterator.js';
import { hold, Message, release } from './message.js';

export type MessageHandler = (message: Message) => unknown;

const NONE: readonly MessageIterator[] = [];

/**
 * Brings the messages and events of one subscription to its handler, listeners and loops, in order. What they cannot
 * take yet waits here, unconsumed, so the session's credit bounds it (PROTOCOL.md §6).
 */
export abstract class Delivery {
  /** Made when something has to wait. */
  private queue: Fifo<Message | (() => void)> | undefined;
  private iterators: readonly MessageIterator[] = NONE;
  /** A handler runs, or in ordered mode its promise is not settled. */
  private busy = false;
  private stopped = false;
  /** There was a listener once; without one nobody needs to look. */
  private heard = false;
  private end: { readonly error: TrunklineError | undefined } | undefined;

  constructor(
    private readonly handler: MessageHandler | undefined,
    private readonly ordered: boolean,
  ) {}

  /** Whether there are `message` listeners. */
  protected abstract hasListeners(): boolean;

  /** Calls them; a promise when one of them returned one. Never throws and never rejects. */
  protected abstract callListeners(message: Message): Promise<unknown> | undefined;

  protected abstract handlerFailed(error: unknown): void;

  /** The last loop was left and nobody else takes messages. */
  protected abstract abandoned(): void;

  private get hasConsumer(): boolean {
    return this.handler !== undefined || this.iterators.length > 0 || (this.heard && this.hasListeners());
  }

  private get waits(): boolean {
    return this.queue !== undefined && this.queue.size > 0;
  }

  private push(item: Message | (() => void)): void {
    this.queue ??= new Fifo();
    this.queue.push(item);
  }

  protected deliver(message: Message): void {
    if (this.stopped) return;
    if (this.busy || this.waits || !this.hasConsumer) {
      hold(message);
      this.push(message);
      return;
    }
    this.call(message);
    if (this.waits) this.drain();
  }

  /** Runs `event` behind the messages that wait for a handler; at once when there is nobody to wait for. */
  event(event: () => void): void {
    if (this.immediate) event();
    else this.push(event);
  }

  /** Whether an event waits for nothing. */
  get immediate(): boolean {
    return this.stopped || !(this.busy || this.waits) || !this.hasConsumer;
  }

  private call(message: Message): void {
    let pending: PromiseLike<unknown> | undefined;
    this.busy = true;
    if (this.iterators.length > 0) for (const iterator of this.iterators) iterator.push(message);
    if (this.handler !== undefined) {
      try {
        const result = this.handler(message);
        if (isThenable(result)) pending = Promise.resolve(result).catch((error) => this.handlerFailed(error));
      } catch (error) {
        this.handlerFailed(error);
      }
    }
    if (this.heard && this.hasListeners()) {
      const listeners = this.callListeners(message);
      pending = pending === undefined || listeners === undefined ? (pending ?? listeners) : all(pending, listeners);
    }
    if (pending === undefined) {
      this.busy = false;
      return;
    }
    hold(message);
    this.busy = this.ordered;
    pending.then(() => this.settled(message));
  }

  private settled(message: Message): void {
    release(message);
    if (!this.ordered) return;
    this.busy = false;
    this.drain();
  }

  private drain(): void {
    while (!this.busy && this.waits && this.hasConsumer) {
      const item = this.queue!.shift()!;
      if (item instanceof Message) {
        this.call(item);
        release(item);
      } else {
        item();
      }
    }
  }

  /** A listener was added: what waited for one comes after the code that runs now. */
  listened(): void {
    this.heard = true;
    if (this.waits) Promise.resolve().then(() => this.drain());
  }

  iterate(): MessageIterator {
    const iterator: MessageIterator = new MessageIterator(
      (error) => this.handlerFailed(error),
      (left) => {
        if (!this.iterators.includes(left)) return;
        this.iterators = this.iterators.filter((other) => other !== left);
        if (!this.hasConsumer) this.abandoned();
      },
    );
    const first = !this.hasConsumer;
    this.iterators = [...this.iterators, iterator];
    if (first) this.drain();
    if (this.end !== undefined) this.finish();
    return iterator;
  }

  /** Nothing more comes: loops end behind what waits, then `event` runs. */
  complete(error: TrunklineError | undefined, event: () => void): void {
    if (!this.hasConsumer) {
      // nobody may ever come for it, and then its bytes would be missing from the credit for good
      for (const item of this.queue?.values() ?? []) if (item instanceof Message) release(item);
    }
    this.event(() => {
      this.end = { error };
      this.finish();
      event();
    });
  }

  private finish(): void {
    const { iterators, end } = this;
    this.iterators = NONE;
    for (const iterator of iterators) iterator.end(end?.error);
  }

  /** Nobody is called any more, and what waits is dropped (rule 8). */
  stop(error: TrunklineError | undefined): void {
    if (this.stopped) return;
    this.stopped = true;
    for (const item of this.queue?.take() ?? []) if (item instanceof Message) release(item);
    for (const iterator of this.iterators) iterator.drop();
    this.end ??= { error };
    this.finish();
  }
}

function all(first: PromiseLike<unknown>, second: PromiseLike<unknown>): Promise<unknown> {
  return Promise.all([first, second]);
}
