import { type Flushable, type Flusher, knownCode, payload, type Session, TrunklineError, Type } from '@trunkline/proto';
import { notHeld } from './queue-message.js';

/** Most sequences of one message, two for each range: it has to be shorter than the dispatcher's largest. */
const MAX_RANGES = 1024;

interface Waiter {
  readonly sequence: number;
  resolve(): void;
  reject(error: TrunklineError): void;
}

/** What a NACK or EXTEND says beside the messages. */
interface Terms {
  readonly type: number;
  readonly delayMs: number;
  readonly reason: string;
}

const ACK: Terms = { type: Type.ACK, delayMs: 0, reason: '' };

/** One message of the wire that is being put together. */
interface Call {
  readonly terms: Terms;
  readonly ranges: number[];
  readonly waiters: Waiter[];
}

/** ACK, NACK and EXTEND of one consumption: what comes in one step is as few messages as possible. */
export class Settlements implements Flushable {
  private calls: Call[] = [];
  private readonly waiting = new Map<number, readonly Waiter[]>();
  private lastCall = 0;
  private dirty = false;

  constructor(
    private readonly flusher: Flusher,
    private readonly code: number,
    private readonly target: () => { session: Session; line: number } | undefined,
    /** Hears of what nobody waits for. */
    private readonly failed: (error: TrunklineError) => void,
  ) {}

  get size(): number {
    return this.waiting.size;
  }

  /** Acknowledges without anybody who waits: only a failure is told. */
  ackSilently(sequence: number): void {
    this.add(ACK, sequence);
  }

  nackSilently(sequence: number, reason: string): void {
    this.add({ type: Type.NACK, delayMs: 0, reason }, sequence);
  }

  ack(sequence: number): Promise<void> {
    return this.wait(ACK, sequence);
  }

  nack(sequence: number, delayMs: number, reason: string): Promise<void> {
    return this.wait({ type: Type.NACK, delayMs, reason }, sequence);
  }

  extend(sequence: number, delayMs: number): Promise<void> {
    return this.wait({ type: Type.EXTEND, delayMs, reason: '' }, sequence);
  }

  private wait(terms: Terms, sequence: number): Promise<void> {
    return new Promise((resolve, reject) => this.add(terms, sequence, { sequence, resolve, reject }));
  }

  private add(terms: Terms, sequence: number, waiter?: Waiter): void {
    let call = this.calls[this.calls.length - 1];
    const joins =
      call !== undefined &&
      sameTerms(call.terms, terms) &&
      call.waiters.length > 0 === (waiter !== undefined) &&
      call.ranges.length < MAX_RANGES;
    if (call === undefined || !joins) {
      call = { terms, ranges: [], waiters: [] };
      this.calls.push(call);
    }
    const { ranges } = call;
    if (ranges.length > 0 && ranges[ranges.length - 1] === sequence - 1) ranges[ranges.length - 1] = sequence;
    else ranges.push(sequence, sequence);
    if (waiter !== undefined) call.waiters.push(waiter);
    if (this.dirty) return;
    this.dirty = true;
    this.flusher.add(this);
  }

  flush(): void {
    this.dirty = false;
    const { calls } = this;
    this.calls = [];
    const target = this.target();
    if (target === undefined) {
      for (const { waiters } of calls) for (const waiter of waiters) waiter.reject(gone());
      return;
    }
    const { session, line } = target;
    for (const { terms, ranges, waiters } of calls) {
      let call = 0;
      if (waiters.length > 0) {
        this.lastCall = (this.lastCall % 0xffffffff) + 1;
        call = this.lastCall;
        this.waiting.set(call, waiters);
      }
      const { type, delayMs, reason } = terms;
      session.send({ type, code: this.code, line }, payload.settle.encode({ call, ranges, delayMs, reason }));
    }
  }

  /** SETTLED. */
  settled({ call, failed, code, message }: payload.Settled): void {
    const bad = (sequence: number) => {
      for (let index = 0; index + 1 < failed.length; index += 2) {
        if (sequence >= failed[index]! && sequence <= failed[index + 1]!) return true;
      }
      return false;
    };
    const errorFor = (sequence: number) => {
      const known = knownCode(code, 'NOT_HELD');
      return known === 'NOT_HELD' ? notHeld(sequence) : new TrunklineError(known, message || undefined);
    };
    const waiters = this.waiting.get(call);
    this.waiting.delete(call);
    for (const waiter of waiters ?? []) {
      if (bad(waiter.sequence)) waiter.reject(errorFor(waiter.sequence));
      else waiter.resolve();
    }
    if (waiters === undefined && failed.length > 0) this.failed(errorFor(failed[0]!));
  }

  /** The session is gone, and with it what it holds. */
  lost(): void {
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    for (const waiters of waiting) for (const waiter of waiters) waiter.reject(gone());
    for (const { waiters } of this.calls.splice(0)) for (const waiter of waiters) waiter.reject(gone());
  }
}

function sameTerms(one: Terms, other: Terms): boolean {
  return one.type === other.type && one.delayMs === other.delayMs && one.reason === other.reason;
}

function gone(): TrunklineError {
  const message = 'the session or the consumption ended before the answer: the message may come again';
  return new TrunklineError('DISCONNECTED', message, { retryable: true });
}
