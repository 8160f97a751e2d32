import type { TrunklineError } from '@trunkline/proto';
import { Fifo } from './fifo.js';
import { hold, type Message, release } from './message.js';

interface Waiter {
  resolve(result: IteratorResult<Message, undefined>): void;
  reject(error: TrunklineError): void;
}

const done: IteratorReturnResult<undefined> = Object.freeze({ done: true, value: undefined });

/**
 * One `for await` loop over a subscription. A message's bytes are given back when the loop takes the next one, so what
 * waits here is bounded by the credit window.
 */
export class MessageIterator implements AsyncIterableIterator<Message, undefined> {
  private readonly messages = new Fifo<Message>();
  private readonly waiting = new Fifo<Waiter>();
  private current: Message | undefined;
  private ended = false;
  private error: TrunklineError | undefined;

  constructor(
    private readonly unreadable: (error: unknown) => void,
    private readonly left: (iterator: MessageIterator) => void,
  ) {}

  push(message: Message): void {
    if (this.ended || !this.readable(message)) return;
    hold(message);
    const waiter = this.waiting.shift();
    if (waiter === undefined) this.messages.push(message);
    else waiter.resolve(this.give(message));
  }

  /** A loop ends with its first throw, so a message that cannot be read is told and left out (F50). */
  private readable(message: Message): boolean {
    try {
      return message.meta !== undefined;
    } catch (error) {
      this.unreadable(error);
      return false;
    }
  }

  private give(message: Message): IteratorResult<Message, undefined> {
    this.releaseCurrent();
    this.current = message;
    return { done: false, value: message };
  }

  private releaseCurrent(): void {
    const { current } = this;
    this.current = undefined;
    if (current !== undefined) release(current);
  }

  /** The loop ends behind the messages that wait: with the error, or normally. */
  end(error: TrunklineError | undefined): void {
    if (this.ended) return;
    this.ended = true;
    this.error = error;
    for (const waiter of this.waiting.take()) this.settle(waiter);
  }

  private settle(waiter: Waiter): void {
    const { error } = this;
    this.error = undefined;
    if (error === undefined) waiter.resolve(done);
    else waiter.reject(error);
  }

  /** Drops what waits. */
  drop(): void {
    this.releaseCurrent();
    for (const message of this.messages.take()) release(message);
  }

  next(): Promise<IteratorResult<Message, undefined>> {
    this.releaseCurrent();
    const message = this.messages.shift();
    if (message !== undefined) return Promise.resolve(this.give(message));
    return new Promise((resolve, reject) => {
      const waiter = { resolve, reject };
      if (this.ended) this.settle(waiter);
      else this.waiting.push(waiter);
    });
  }

  return(): Promise<IteratorResult<Message, undefined>> {
    this.drop();
    this.error = undefined;
    this.end(undefined);
    this.left(this);
    return Promise.resolve(done);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
