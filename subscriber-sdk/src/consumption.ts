import {
  isThenable,
  type Log,
  type payload,
  type Session,
  type SessionContext,
  sameBytes,
  TrunklineError,
} from '@trunkline/proto';
import { Events } from './events.js';
import { Fifo } from './fifo.js';
import type { ConsumeFields } from './options.js';
import { MAX_REASON, type NackOptions, notHeld, QueueMessage } from './queue-message.js';
import { Settlements } from './settlements.js';
import type { GapEvent } from './subscription.js';

/** Called with each message. In `ack: 'auto'` its return acknowledges the message, and its throw rejects it. */
export type QueueHandler = (message: QueueMessage) => unknown;

export type ConsumptionState = 'pending' | 'active' | 'disconnected' | 'ended';

export interface ConsumptionEvents {
  state: readonly [state: ConsumptionState];
  /** Messages that the queue dropped, or cannot read, before the group got them. */
  gap: readonly [gap: GapEvent];
  /** It is over: refused, the queue is gone, or the client closed. */
  end: readonly [error: TrunklineError];
  error: readonly [error: TrunklineError];
}

/** What a consumption needs of its client. */
export interface ConsumptionSide {
  readonly context: SessionContext;
  readonly log: Log;
  /** It ended from this side. */
  leave(consumption: Consumption): void;
}

interface Waiter {
  resolve(result: IteratorResult<QueueMessage, undefined>): void;
  reject(error: TrunklineError): void;
}

const NOTHING = new Uint8Array(0);
const DONE: IteratorReturnResult<undefined> = Object.freeze({ done: true, value: undefined });

/**
 * Reads a queue as a member of a group. Messages come to the handler, or to a `for await` loop, in order. What is not
 * acknowledged when the session ends goes to the group again; the consumption goes on with the next session.
 */
export class Consumption extends Events<ConsumptionEvents> implements AsyncDisposable {
  state: ConsumptionState = 'pending';
  /** @internal Where its messages come from in this session. */
  target: { session: Session; line: number } | undefined;
  private readonly waiting = new Fifo<QueueMessage>();
  private readonly takers = new Fifo<Waiter>();
  private readonly settlements: Settlements;
  private readonly acceptance: { promise: Promise<void>; resolve(): void; reject(error: TrunklineError): void };
  private readonly private: boolean;
  /** Of a private group: everything up to here was settled, or is still open in `open`. */
  private seen = 0;
  /** Of a private group: it was accepted once, so that it has a place to go on from. */
  private begun = false;
  /** @internal The history that `seen` belongs to. */
  epoch: Uint8Array = NOTHING;
  /** Where it last asked to go on. */
  private askedAfter = 0;
  private readonly open = new Set<number>();
  private running = 0;
  private life = 0;
  private looping = false;
  /** What the loop has got since its last step: one message, unless it asked for more before it got the first. */
  private given: QueueMessage[] = [];
  private endedBy: TrunklineError | undefined;

  /** @internal Made by `client.consume`. */
  constructor(
    /** @internal */
    readonly fields: ConsumeFields,
    private readonly handler: QueueHandler | undefined,
    private readonly side: ConsumptionSide,
  ) {
    super(side.log);
    this.private = fields.group === '';
    const { flusher } = side.context;
    const report = (error: TrunklineError) => this.report(error);
    this.settlements = new Settlements(flusher, fields.code, () => this.target, report);
    let resolve = () => {};
    let reject: (error: TrunklineError) => void = () => {};
    const promise = new Promise<void>((one, other) => {
      resolve = one;
      reject = other;
    });
    // who does not ask is told by `end`
    promise.catch(() => {});
    this.acceptance = { promise, resolve, reject };
  }

  get code(): number {
    return this.fields.code;
  }

  /** Resolves when the dispatcher accepted it for the first time. @throws TrunklineError what it was refused with */
  get accepted(): Promise<void> {
    return this.acceptance.promise;
  }

  /** Messages that came and that nobody took yet. */
  get buffered(): number {
    return this.waiting.size;
  }

  // ---- acknowledging ----

  /** @internal */
  ack(message: QueueMessage): Promise<void> {
    if (!this.holds(message)) return Promise.reject(this.late(message));
    this.open.delete(message.sequence);
    return this.settlements.ack(message.sequence);
  }

  /** @internal */
  async nack(message: QueueMessage, { delayMs, reason }: Required<NackOptions>): Promise<void> {
    if (!this.holds(message)) throw this.late(message);
    await this.settlements.nack(message.sequence, delayMs, reason);
  }

  /** @internal @param timeMs 0: the queue's own */
  async extend(message: QueueMessage, timeMs: number): Promise<void> {
    if (!this.holds(message)) throw this.late(message);
    await this.settlements.extend(message.sequence, timeMs);
  }

  private holds(message: QueueMessage): boolean {
    return this.target !== undefined && message.life === this.life;
  }

  private late({ sequence }: QueueMessage): TrunklineError {
    return notHeld(sequence, 'was delivered in a session that has ended: it comes again');
  }

  private settleFor(message: QueueMessage, failure: TrunklineError | undefined): void {
    if (message.settled) return;
    message.settled = true;
    if (!this.holds(message)) return;
    if (failure === undefined) {
      this.open.delete(message.sequence);
      this.settlements.ackSilently(message.sequence);
    } else {
      this.settlements.nackSilently(message.sequence, failure.message.slice(0, MAX_REASON));
    }
  }

  // ---- the handler ----

  private drain(): void {
    const { handler } = this;
    if (handler === undefined) return;
    while (this.running < this.fields.concurrency && this.waiting.size > 0) this.call(handler, this.shift()!);
  }

  private shift(): QueueMessage | undefined {
    const message = this.waiting.shift();
    if (message !== undefined) this.target?.session.consume(message.length);
    return message;
  }

  private call(handler: QueueHandler, message: QueueMessage): void {
    const auto = this.fields.auto;
    let result: unknown;
    try {
      result = handler(message);
    } catch (error) {
      this.handlerFailed(message, error);
      return;
    }
    if (!isThenable(result)) {
      if (auto) this.settleFor(message, undefined);
      return;
    }
    this.running++;
    Promise.resolve(result).then(
      () => {
        this.running--;
        if (auto) this.settleFor(message, undefined);
        this.drain();
      },
      (error: unknown) => {
        this.running--;
        this.handlerFailed(message, error);
        this.drain();
      },
    );
  }

  private handlerFailed(message: QueueMessage, error: unknown): void {
    this.failed(error, 'message');
    const reason = error instanceof Error ? error.message : String(error);
    this.settleFor(message, new TrunklineError('HANDLER_FAILED', reason, { cause: error }));
  }

  // ---- loops ----

  /**
   * Messages as a loop takes them. In `ack: 'auto'` the next step acknowledges the message, and leaving the loop
   * rejects it. Leaving the loop ends the consumption.
   * @throws TrunklineError STATE_INVALID: there is a handler, or another loop
   */
  [Symbol.asyncIterator](): AsyncIterableIterator<QueueMessage, undefined> {
    if (this.handler !== undefined || this.looping) {
      throw new TrunklineError('STATE_INVALID', 'a consumption has one handler, or one loop');
    }
    this.looping = true;
    const iterator: AsyncIterableIterator<QueueMessage, undefined> = {
      next: () => this.next(),
      return: async () => {
        this.settleGiven(new TrunklineError('ABORTED', 'the loop was left'));
        await this.close();
        return DONE;
      },
      [Symbol.asyncIterator]: () => iterator,
    };
    return iterator;
  }

  private next(): Promise<IteratorResult<QueueMessage, undefined>> {
    this.settleGiven(undefined);
    for (let message = this.shift(); message !== undefined; message = this.shift()) {
      if (this.readable(message)) {
        this.given.push(message);
        return Promise.resolve({ done: false, value: message });
      }
    }
    if (this.state === 'ended') return this.finished();
    return new Promise((resolve, reject) => this.takers.push({ resolve, reject }));
  }

  private settleGiven(failure: TrunklineError | undefined): void {
    for (const message of this.given.splice(0)) if (this.fields.auto) this.settleFor(message, failure);
  }

  private finished(): Promise<IteratorResult<QueueMessage, undefined>> {
    const error = this.endedBy;
    this.endedBy = undefined;
    return error === undefined ? Promise.resolve(DONE) : Promise.reject(error);
  }

  /** A loop ends with its first throw, so a message that cannot be read is told, rejected and left out (F50). */
  private readable(message: QueueMessage): boolean {
    try {
      return message.meta !== undefined;
    } catch (error) {
      this.handlerFailed(message, error);
      return false;
    }
  }

  private give(): void {
    while (this.takers.size > 0 && this.waiting.size > 0) {
      const message = this.shift()!;
      if (!this.readable(message)) continue;
      this.given.push(message);
      this.takers.shift()!.resolve({ done: false, value: message });
    }
  }

  // ---- from the dispatcher ----

  /** @internal Where it begins in the next session: a private group goes on behind what it has done. */
  resumeAfter(): number | undefined {
    if (!this.private || !this.begun) return undefined;
    let after = this.seen;
    for (const sequence of this.open) after = Math.min(after, sequence - 1);
    this.askedAfter = after;
    return after;
  }

  /** @internal */
  receive(batch: Uint8Array, at: number): void {
    const message = new QueueMessage(this, this.life, batch, at);
    if (this.private && !this.isNew(message)) {
      this.target?.session.consume(message.length);
      message.settled = true;
      this.settlements.ackSilently(message.sequence);
      return;
    }
    this.waiting.push(message);
  }

  /** A private group that goes on in a new session gets again what came behind an open message. */
  private isNew({ sequence, redelivered }: QueueMessage): boolean {
    if (sequence <= this.seen && !redelivered && !this.open.has(sequence)) return false;
    this.seen = Math.max(this.seen, sequence);
    this.open.add(sequence);
    return true;
  }

  /** @internal A run was received. */
  received(): void {
    if (this.handler !== undefined) this.drain();
    else this.give();
  }

  /** @internal */
  acceptedIn(session: Session, line: number, epoch: Uint8Array, position: number): void {
    this.life++;
    this.target = { session, line };
    if (this.private) this.checkHistory(epoch, position);
    this.acceptance.resolve();
    this.move('active');
  }

  /** Of a private group. A queue that began anew has other messages under the same sequences. */
  private checkHistory(epoch: Uint8Array, position: number): void {
    const other = this.begun && !sameBytes(this.epoch, epoch);
    const anew = other || position < this.askedAfter;
    this.epoch = epoch.slice();
    if (this.begun && !anew) return;
    this.askedAfter = 0;
    this.seen = position;
    this.open.clear();
    if (!this.begun) this.begun = true;
    else this.gap({ count: 0, first: 0, last: 0, reason: 'history lost' });
  }

  /** @internal */
  settledBy(settled: payload.Settled): void {
    this.settlements.settled(settled);
  }

  /** @internal */
  gap(gap: GapEvent): void {
    // what is lost does not come again, so there is nothing to go back for
    for (const sequence of this.open) if (sequence >= gap.first && sequence <= gap.last) this.open.delete(sequence);
    this.emit('gap', gap);
  }

  /** @internal The session is gone: what it held comes again. */
  lost(): void {
    if (this.state === 'ended') return;
    this.forget();
    if (this.state === 'active') this.move('disconnected');
  }

  private forget(): void {
    const session = this.target?.session;
    this.target = undefined;
    this.life++;
    for (const message of this.waiting.take()) session?.consume(message.length);
    this.settlements.lost();
  }

  /** @internal Over, not by this side. */
  ended(error: TrunklineError): void {
    if (this.state === 'ended') return;
    this.forget();
    this.endedBy = error;
    this.move('ended');
    this.acceptance.reject(error);
    for (const taker of this.takers.take()) this.finished().then(taker.resolve, taker.reject);
    if (!this.emit('end', error)) this.report(error);
  }

  private move(state: ConsumptionState): void {
    if (this.state === state) return;
    this.state = state;
    this.emit('state', state);
  }

  /**
   * Ends it. Acknowledgements that were given before are sent first; everything else that it holds goes to the group
   * again at once. Always resolves; no message is handed out after it.
   */
  async close(): Promise<void> {
    if (this.state === 'ended') return;
    this.flush();
    this.side.leave(this);
    this.forget();
    this.move('ended');
    this.acceptance.reject(new TrunklineError('CLOSED'));
    for (const taker of this.takers.take()) taker.resolve(DONE);
  }

  /** @internal Sends the acknowledgements that were given until now. */
  flush(): void {
    if (this.target !== undefined) this.settlements.flush();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
