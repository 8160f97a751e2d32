import {
  Flag,
  HEADER_BYTES,
  knownCode,
  MessageEncoder,
  type Meta,
  nextPublisher,
  OFFSET,
  payload,
  readU32,
  type Session,
  type SessionContext,
  Timer,
  TrunklineError,
  Type,
  writeHeader,
} from '@trunkline/proto';
import { Backlog, type Entry } from './publish-backlog.js';
import { Batch, type PublishMessage } from './publish-many.js';
import { checkSignal, type PublishOptions, timeoutOf } from './publish-options.js';

/** Most messages and bytes that wait for their confirmation, of all codes together: beyond it none is taken. */
export const MAX_UNCONFIRMED = 65_536;
export const MAX_UNCONFIRMED_BYTES = 64 * 1024 * 1024;
const SLAB_BYTES = 65_536;

/**
 * Publishes into queues. Messages keep their number until they are confirmed and are sent again in the next session,
 * so that the queue stores each once.
 */
export class Publishing {
  /** Which of the publishers of this process. */
  readonly index = nextPublisher();
  private readonly backlogs = new Map<number, Backlog>();
  private readonly encoder = new MessageEncoder();
  private session: Session | undefined;
  private slab = new Uint8Array(0);
  private slabUsed = 0;
  private count = 0;
  private bytes = 0;
  /** Something waits for credit. */
  private waiting = false;
  /** Of `publishMany`: they wait for room. */
  private readonly batches = new Set<Batch>();
  private waiters: { resolve(): void; reject(error: TrunklineError): void }[] = [];
  private closedBy: TrunklineError | undefined;
  private context: SessionContext | undefined;
  private readonly timer = new Timer({ onTimer: () => this.expire() });

  /** Messages without a confirmation yet. */
  get unconfirmed(): number {
    return this.count;
  }

  /** @throws TrunklineError OPTION_INVALID, META_INVALID, BODY_INVALID, MESSAGE_TOO_LARGE, LIMIT_EXCEEDED: not taken */
  publish(code: number, body: unknown, options: PublishOptions = {}): Promise<number> {
    const timeout = timeoutOf(options);
    const { signal } = options;
    checkSignal(signal);
    return new Promise((resolve, reject) => {
      if (signal === undefined) {
        this.add(code, body, options, timeout, resolve, reject);
        return;
      }
      const done = () => signal.removeEventListener('abort', abort);
      const stored = (sequence: number) => {
        done();
        resolve(sequence);
      };
      const failed = (error: TrunklineError) => {
        done();
        reject(error);
      };
      const entry = this.add(code, body, options, timeout, stored, failed);
      const abort = () => this.giveUp(entry, new TrunklineError('ABORTED', unknown(entry), { cause: signal.reason }));
      signal.addEventListener('abort', abort);
    });
  }

  /** Takes all of the messages, as there is room, or none. @throws as `publish`; PublishManyError: some were not stored */
  publishMany(code: number, messages: readonly PublishMessage[], options: PublishOptions = {}): Promise<number[]> {
    const timeout = timeoutOf(options);
    const { signal } = options;
    checkSignal(signal);
    if (!Array.isArray(messages)) throw new TrunklineError('OPTION_INVALID', 'messages must be an array');
    this.backlog(code);
    for (const message of messages) {
      if (typeof message !== 'object' || message === null) {
        throw new TrunklineError('OPTION_INVALID', 'a message must be an object');
      }
      const { body, ...meta } = message;
      this.checkSize(HEADER_BYTES + this.encoder.encode(body, { ...options, ...meta }));
    }
    if (messages.length === 0) return Promise.resolve([]);
    const deadline = this.now + timeout;
    const batch: Batch = new Batch(
      // the caller may go on with its array
      [...messages],
      deadline,
      ({ body, ...meta }, stored, failed) => this.take(code, body, { ...options, ...meta }, deadline, stored, failed),
      () => signal?.removeEventListener('abort', abort),
    );
    const abort = () => {
      const cause = { cause: signal!.reason };
      this.batches.delete(batch);
      for (const entry of batch.entries) {
        this.settle(entry)?.failed(new TrunklineError('ABORTED', unknown(entry), cause));
      }
      batch.refuseRest(new TrunklineError('ABORTED', NOT_SENT, cause));
      this.shift();
    };
    signal?.addEventListener('abort', abort);
    this.batches.add(batch);
    this.takeBatches();
    if (!batch.taken) this.arm(deadline);
    return batch.promise;
  }

  /**
   * Resolves when there is room for a publish: at once, or when half of the bound is free again.
   * @throws TrunklineError the reason of the end
   */
  drained(): Promise<void> {
    if (this.closedBy !== undefined) return Promise.reject(this.closedBy);
    if (this.hasRoom) return Promise.resolve();
    return new Promise((resolve, reject) => this.waiters.push({ resolve, reject }));
  }

  private get isFull(): boolean {
    return this.count >= MAX_UNCONFIRMED || this.bytes >= MAX_UNCONFIRMED_BYTES;
  }

  /** Messages of a `publishMany` that wait for room go first. */
  private get hasRoom(): boolean {
    return !this.isFull && this.batches.size === 0;
  }

  private get now(): number {
    return this.context?.clock.now() ?? 0;
  }

  private takeBatches(): void {
    for (const batch of this.batches) {
      while (!batch.taken && !this.isFull) batch.takeNext();
      if (!batch.taken) return;
      this.batches.delete(batch);
    }
  }

  /** Something was settled. */
  private roomCame(): void {
    if (this.batches.size > 0) this.takeBatches();
    const half = this.count <= MAX_UNCONFIRMED / 2 && this.bytes <= MAX_UNCONFIRMED_BYTES / 2;
    if (this.waiters.length === 0 || !half || !this.hasRoom) return;
    for (const { resolve } of this.waiters.splice(0)) resolve();
  }

  private checkRoom(): void {
    if (this.hasRoom) return;
    const message = `${this.count} messages wait for their confirmation: not taken`;
    throw new TrunklineError('LIMIT_EXCEEDED', message, { retryable: true });
  }

  private checkSize(length: number): void {
    const most = this.session?.peerMaxMessage;
    if (most === undefined || length <= most) return;
    throw new TrunklineError('MESSAGE_TOO_LARGE', `message of ${length} bytes, the dispatcher takes at most ${most}`);
  }

  private add(
    code: number,
    body: unknown,
    meta: PublishOptions,
    timeout: number,
    stored: (sequence: number) => void,
    failed: (error: TrunklineError) => void,
  ): Entry {
    this.checkRoom();
    return this.take(code, body, meta, this.now + timeout, stored, failed);
  }

  private take(
    code: number,
    body: unknown,
    meta: Partial<Meta> & { readonly json?: boolean },
    deadline: number,
    stored: (sequence: number) => void,
    failed: (error: TrunklineError) => void,
  ): Entry {
    const backlog = this.backlog(code);
    const length = HEADER_BYTES + this.encoder.encode(body, meta);
    this.checkSize(length);
    const start = this.reserve(length);
    const { metaLength } = this.encoder;
    const flags = this.encoder.flags | (meta.json === true ? Flag.JSON : 0);
    const sequence = backlog.end;
    writeHeader(this.slab, start, length, { type: Type.PUBLISH, code, line: this.index, sequence, flags, metaLength });
    this.encoder.write(this.slab, start + HEADER_BYTES);
    const entry: Entry = {
      buffer: this.slab,
      start,
      end: start + length,
      deadline,
      sent: false,
      settled: false,
      stored,
      failed,
    };
    backlog.entries.push(entry);
    this.count++;
    this.bytes += length;
    this.arm(deadline);
    if (!this.waiting && backlog.next === sequence) this.send(backlog);
    return entry;
  }

  /** Makes sure that the timer comes no later than this. */
  private arm(deadline: number): void {
    const { timers } = this.context!;
    if (this.timer.active && this.timer.deadline <= deadline) return;
    timers.start(this.timer, Math.max(0, deadline - this.now));
  }

  private backlog(code: number): Backlog {
    if (!Number.isInteger(code) || code < 1 || code > 0xffffffff) {
      throw new TrunklineError('OPTION_INVALID', `${code} is no service code`);
    }
    let backlog = this.backlogs.get(code);
    if (backlog === undefined) {
      backlog = new Backlog(code);
      this.backlogs.set(code, backlog);
    }
    return backlog;
  }

  private reserve(length: number): number {
    if (this.slabUsed + length > this.slab.length) {
      this.slab = new Uint8Array(Math.max(SLAB_BYTES, length));
      this.slabUsed = 0;
    }
    const at = this.slabUsed;
    this.slabUsed += length;
    return at;
  }

  // ---- sessions ----

  get usable(): boolean {
    return this.context !== undefined;
  }

  use(context: SessionContext): void {
    this.context = context;
  }

  /** Everything that is not confirmed goes into the new session, in order. */
  open(session: Session): void {
    if (this.session !== undefined) return;
    this.session = session;
    for (const backlog of this.backlogs.values()) backlog.next = backlog.first;
    this.sendAll();
    this.roomCame();
  }

  lost(session: Session): void {
    if (this.session === session) this.session = undefined;
  }

  /** @param keep credit that is left for others of the session, for now */
  onCredit(session: Session, keep = 0): void {
    if (this.session !== session || !this.waiting) return;
    this.sendAll(keep);
    // whoever else waited for credit has taken of it by then what it needs
    if (this.waiting && keep > 0) Promise.resolve().then(() => this.onCredit(session));
  }

  private sendAll(keep = 0): void {
    this.waiting = false;
    for (const backlog of [...this.backlogs.values()]) {
      if (this.session === undefined || this.send(backlog, keep)) continue;
      // first of all the next time comes another one: a backlog that always has more must not starve it
      this.backlogs.delete(backlog.code);
      this.backlogs.set(backlog.code, backlog);
      return;
    }
  }

  /** Returns false when credit is missing for some of it. */
  private send(backlog: Backlog, keep = 0): boolean {
    const { session } = this;
    if (session === undefined) return true;
    const { end } = backlog;
    while (backlog.next < end) {
      const entry = backlog.at(backlog.next)!;
      if (!entry.settled) {
        if (entry.end - entry.start > session.peerMaxMessage) {
          const most = session.peerMaxMessage;
          this.settle(entry)?.failed(
            new TrunklineError('MESSAGE_TOO_LARGE', `the dispatcher takes at most ${most} bytes`),
          );
        } else if (session.credit <= keep) {
          // takes nothing, but makes the session tell when there is credit again
          if (session.credit <= 0) session.reserveData(0);
          this.waiting = true;
          return false;
        } else {
          session.sendData(entry.buffer, entry.start, entry.end, 1);
          entry.sent = true;
        }
      }
      backlog.next++;
    }
    return true;
  }

  /** PUBLISHED. Returns whether it is for this publisher. */
  published(session: Session, batch: Uint8Array, at: number): boolean {
    if (readU32(batch, at + OFFSET.line) !== this.index) return false;
    const backlog = this.backlogs.get(readU32(batch, at + OFFSET.code));
    const fields = session.decode(payload.published, batch, at);
    if (backlog === undefined || fields === undefined) return true;
    const { stored, refused } = fields;
    for (let index = 0; index + 2 < stored.length; index += 3) {
      const first = Math.max(stored[index]!, backlog.first);
      const end = Math.min(stored[index]! + stored[index + 1]!, backlog.end);
      const shift = stored[index + 2]! - stored[index]!;
      for (let number = first; number < end; number++) this.settle(backlog.at(number))?.stored(number + shift);
    }
    for (const { first, count, code, message, retryable } of refused) {
      const error = new TrunklineError(knownCode(code, 'REFUSED'), message || undefined, { retryable });
      const end = Math.min(first + count, backlog.end);
      for (let number = Math.max(first, backlog.first); number < end; number++)
        this.settle(backlog.at(number))?.failed(error);
    }
    backlog.shift();
    this.roomCame();
    return true;
  }

  private settle(entry: Entry | undefined): Entry | undefined {
    if (entry === undefined || entry.settled) return undefined;
    entry.settled = true;
    entry.buffer = NOTHING;
    this.count--;
    this.bytes -= entry.end - entry.start;
    if (this.count === 0 && this.batches.size === 0) this.context?.timers.stop(this.timer);
    return entry;
  }

  private giveUp(entry: Entry, error: TrunklineError): void {
    this.settle(entry)?.failed(error);
    this.shift();
  }

  private shift(): void {
    for (const backlog of this.backlogs.values()) backlog.shift();
    this.roomCame();
  }

  private expire(): void {
    const { now } = this;
    let next = Number.POSITIVE_INFINITY;
    for (const backlog of this.backlogs.values()) {
      for (const entry of backlog.open()) {
        if (entry.deadline <= now) this.settle(entry)?.failed(new TrunklineError('TIMEOUT', unknown(entry)));
        else next = Math.min(next, entry.deadline);
      }
    }
    for (const batch of this.batches) {
      if (batch.deadline > now) next = Math.min(next, batch.deadline);
      else {
        this.batches.delete(batch);
        batch.refuseRest(new TrunklineError('TIMEOUT', NOT_SENT));
      }
    }
    this.shift();
    if (next < Number.POSITIVE_INFINITY) this.arm(next);
  }

  /** Nobody will ever know more. */
  close(reason: TrunklineError): void {
    this.session = undefined;
    this.closedBy = reason;
    for (const backlog of this.backlogs.values()) {
      for (const entry of backlog.open()) {
        const error = new TrunklineError('DISCONNECTED', unknown(entry), { cause: reason });
        this.settle(entry)?.failed(error);
      }
      backlog.shift();
    }
    for (const batch of this.batches) batch.refuseRest(new TrunklineError('DISCONNECTED', NOT_SENT, { cause: reason }));
    this.batches.clear();
    this.context?.timers.stop(this.timer);
    for (const { reject } of this.waiters.splice(0)) reject(reason);
  }
}

const NOTHING = new Uint8Array(0);
const NOT_SENT = 'the message was not sent';

function unknown({ sent }: Entry): string {
  return sent ? 'no confirmation came: the message may have been stored' : NOT_SENT;
}
