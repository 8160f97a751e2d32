import {
  HEADER_BYTES,
  knownCode,
  MessageEncoder,
  type Meta,
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

/** What a message of a queue carries beside its body. */
export interface PublishOptions extends Partial<Meta> {
  /** How long to wait for the confirmation, ms, 1..2^31-1. Default 300,000. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** One message of `publishMany`. */
export interface PublishMessage extends Partial<Meta> {
  readonly body?: unknown;
}

/** Some messages of a `publishMany` were not stored. */
export class PublishManyError extends TrunklineError {
  constructor(
    first: TrunklineError,
    /** The sequence of each message that was stored; undefined for the others. */
    readonly sequences: readonly (number | undefined)[],
  ) {
    const left = sequences.filter((sequence) => sequence === undefined).length;
    super(first.code, `${left} of ${sequences.length} messages were not confirmed: ${first.message}`, {
      retryable: first.retryable,
      cause: first,
    });
  }
}

const DEFAULT_TIMEOUT = 300_000;
const MAX_TIMEOUT = 2 ** 31 - 1;
/** Most messages and bytes that wait for their confirmation, of all codes together: beyond it none is taken. */
export const MAX_UNCONFIRMED = 65_536;
export const MAX_UNCONFIRMED_BYTES = 64 * 1024 * 1024;
const SLAB_BYTES = 65_536;

/** One message on its way. */
interface Entry {
  readonly buffer: Uint8Array;
  readonly start: number;
  readonly end: number;
  readonly deadline: number;
  sent: boolean;
  settled: boolean;
  stored(sequence: number): void;
  failed(error: TrunklineError): void;
}

/** Publishes of one code, in the order of their numbers. */
class Lane {
  entries: Entry[] = [];
  /** Publish number of `entries[head]`. */
  first = 1;
  head = 0;
  /** Number of the next one to be sent in this session. */
  next = 1;

  constructor(readonly code: number) {}

  get end(): number {
    return this.first + this.entries.length - this.head;
  }

  at(number: number): Entry | undefined {
    return number < this.first ? undefined : this.entries[this.head + number - this.first];
  }

  /** Forgets what is settled at the front. */
  shift(): void {
    while (this.head < this.entries.length && this.entries[this.head]!.settled) {
      this.head++;
      this.first++;
    }
    this.next = Math.max(this.next, this.first);
    if (this.head < 1024 && this.head < this.entries.length) return;
    this.entries = this.entries.slice(this.head);
    this.head = 0;
  }
}

let publishers = 0;

/**
 * Publishes into queues. Messages keep their number until they are confirmed and are sent again in the next session,
 * so that the queue stores each once.
 */
export class Publishing {
  /** Which of the publishers of this process. */
  readonly index = ++publishers;
  private readonly lanes = new Map<number, Lane>();
  private readonly encoder = new MessageEncoder();
  private session: Session | undefined;
  private slab = new Uint8Array(0);
  private slabUsed = 0;
  private count = 0;
  private bytes = 0;
  private waiting = false;
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

  /** All or none of the messages are taken. @throws as `publish`; PublishManyError: some were not stored */
  publishMany(code: number, messages: readonly PublishMessage[], options: PublishOptions = {}): Promise<number[]> {
    const timeout = timeoutOf(options);
    checkSignal(options.signal);
    if (!Array.isArray(messages)) throw new TrunklineError('OPTION_INVALID', 'messages must be an array');
    this.checkRoom(messages.length);
    const sizes = messages.map(
      ({ body, ...meta }) => HEADER_BYTES + this.encoder.encode(body, { ...options, ...meta }),
    );
    for (const size of sizes) this.checkSize(size);
    if (messages.length === 0) return Promise.resolve([]);
    return new Promise((resolve, reject) => {
      const sequences: (number | undefined)[] = messages.map(() => undefined);
      let left = messages.length;
      let first: TrunklineError | undefined;
      const done = (error?: TrunklineError) => {
        first ??= error;
        left--;
        if (left > 0) return;
        options.signal?.removeEventListener('abort', abort);
        if (first === undefined) resolve(sequences as number[]);
        else reject(new PublishManyError(first, sequences));
      };
      const entries = messages.map(({ body, ...meta }, index) =>
        this.add(
          code,
          body,
          { ...options, ...meta },
          timeout,
          (sequence) => {
            sequences[index] = sequence;
            done();
          },
          done,
        ),
      );
      const abort = () => {
        for (const entry of entries) {
          this.giveUp(entry, new TrunklineError('ABORTED', unknown(entry), { cause: options.signal!.reason }));
        }
      };
      options.signal?.addEventListener('abort', abort);
    });
  }

  private checkRoom(count: number): void {
    if (this.count + count <= MAX_UNCONFIRMED && this.bytes <= MAX_UNCONFIRMED_BYTES) return;
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
    meta: Partial<Meta>,
    timeout: number,
    stored: (sequence: number) => void,
    failed: (error: TrunklineError) => void,
  ): Entry {
    const lane = this.lane(code);
    this.checkRoom(1);
    const length = HEADER_BYTES + this.encoder.encode(body, meta);
    this.checkSize(length);
    const start = this.reserve(length);
    const { flags, metaLength } = this.encoder;
    const sequence = lane.end;
    writeHeader(this.slab, start, length, { type: Type.PUBLISH, code, line: this.index, sequence, flags, metaLength });
    this.encoder.write(this.slab, start + HEADER_BYTES);
    const now = this.context?.clock.now() ?? 0;
    const entry: Entry = {
      buffer: this.slab,
      start,
      end: start + length,
      deadline: now + timeout,
      sent: false,
      settled: false,
      stored,
      failed,
    };
    lane.entries.push(entry);
    this.count++;
    this.bytes += length;
    const { timers } = this.context!;
    if (!this.timer.active || this.timer.deadline > entry.deadline) timers.start(this.timer, timeout);
    if (!this.waiting && lane.next === sequence) this.send(lane);
    return entry;
  }

  private lane(code: number): Lane {
    if (!Number.isInteger(code) || code < 1 || code > 0xffffffff) {
      throw new TrunklineError('OPTION_INVALID', `${code} is no service code`);
    }
    let lane = this.lanes.get(code);
    if (lane === undefined) {
      lane = new Lane(code);
      this.lanes.set(code, lane);
    }
    return lane;
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
    for (const lane of this.lanes.values()) lane.next = lane.first;
    this.sendAll();
  }

  lost(session: Session): void {
    if (this.session === session) this.session = undefined;
  }

  onCredit(session: Session): void {
    if (this.session === session && this.waiting) this.sendAll();
  }

  private sendAll(): void {
    this.waiting = false;
    for (const lane of this.lanes.values()) {
      this.send(lane);
      if (this.waiting) return;
    }
  }

  private send(lane: Lane): void {
    const { session } = this;
    if (session === undefined) return;
    const { end } = lane;
    while (lane.next < end) {
      const entry = lane.at(lane.next)!;
      if (!entry.settled) {
        if (entry.end - entry.start > session.peerMaxMessage) {
          const most = session.peerMaxMessage;
          this.settle(entry)?.failed(
            new TrunklineError('MESSAGE_TOO_LARGE', `the dispatcher takes at most ${most} bytes`),
          );
        } else if (session.credit <= 0) {
          // takes nothing, but makes the session tell when there is credit again
          session.reserveData(0);
          this.waiting = true;
          return;
        } else {
          session.sendData(entry.buffer, entry.start, entry.end, 1);
          entry.sent = true;
        }
      }
      lane.next++;
    }
  }

  /** PUBLISHED. Returns whether it is for this publisher. */
  published(session: Session, batch: Uint8Array, at: number): boolean {
    if (readU32(batch, at + OFFSET.line) !== this.index) return false;
    const lane = this.lanes.get(readU32(batch, at + OFFSET.code));
    const fields = session.decode(payload.published, batch, at);
    if (lane === undefined || fields === undefined) return true;
    const { stored, refused } = fields;
    for (let index = 0; index + 2 < stored.length; index += 3) {
      const first = Math.max(stored[index]!, lane.first);
      const end = Math.min(stored[index]! + stored[index + 1]!, lane.end);
      const shift = stored[index + 2]! - stored[index]!;
      for (let number = first; number < end; number++) this.settle(lane.at(number))?.stored(number + shift);
    }
    for (const { first, count, code, message, retryable } of refused) {
      const error = new TrunklineError(knownCode(code, 'REFUSED'), message || undefined, { retryable });
      const end = Math.min(first + count, lane.end);
      for (let number = Math.max(first, lane.first); number < end; number++)
        this.settle(lane.at(number))?.failed(error);
    }
    lane.shift();
    return true;
  }

  private settle(entry: Entry | undefined): Entry | undefined {
    if (entry === undefined || entry.settled) return undefined;
    entry.settled = true;
    this.count--;
    this.bytes -= entry.end - entry.start;
    if (this.count === 0) this.context?.timers.stop(this.timer);
    return entry;
  }

  private giveUp(entry: Entry, error: TrunklineError): void {
    this.settle(entry)?.failed(error);
    for (const lane of this.lanes.values()) lane.shift();
  }

  private expire(): void {
    const { clock, timers } = this.context!;
    const now = clock.now();
    let next = Number.POSITIVE_INFINITY;
    for (const lane of this.lanes.values()) {
      for (let index = lane.head; index < lane.entries.length; index++) {
        const entry = lane.entries[index]!;
        if (entry.settled) continue;
        if (entry.deadline <= now) this.settle(entry)?.failed(new TrunklineError('TIMEOUT', unknown(entry)));
        else next = Math.min(next, entry.deadline);
      }
      lane.shift();
    }
    if (next < Number.POSITIVE_INFINITY) timers.start(this.timer, Math.max(0, next - now));
  }

  /** Nobody will ever know more. */
  close(reason: TrunklineError): void {
    this.session = undefined;
    for (const lane of this.lanes.values()) {
      for (let index = lane.head; index < lane.entries.length; index++) {
        const entry = lane.entries[index]!;
        const error = new TrunklineError('DISCONNECTED', unknown(entry), { cause: reason });
        this.settle(entry)?.failed(error);
      }
      lane.shift();
    }
  }
}

function unknown({ sent }: Entry): string {
  return sent ? 'no confirmation came: the message may have been stored' : 'the message was not sent';
}

function timeoutOf({ timeoutMs = DEFAULT_TIMEOUT }: PublishOptions): number {
  if (Number.isSafeInteger(timeoutMs) && timeoutMs >= 1 && timeoutMs <= MAX_TIMEOUT) return timeoutMs;
  throw new TrunklineError('OPTION_INVALID', `timeoutMs must be an integer 1..${MAX_TIMEOUT}`);
}

function checkSignal(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new TrunklineError('ABORTED', undefined, { cause: signal.reason });
}
