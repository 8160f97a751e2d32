import { Flag, isData, OFFSET, readU32, Type } from './header.js';
import type { Session } from './session.js';
import type { SessionContext, SessionEvents } from './session-types.js';
import { LONGEST_TURN, type Resumable } from './turns.js';

const BOUNDARY_FLAGS = Flag.FINAL | Flag.SNAPSHOT | Flag.SNAPSHOT_END;

/** Most messages before a look at the clock where it is not known what they cost: at first, and on another line. */
const UNKNOWN = 32;
/** In the place of a line: control messages are of any cost. */
const CONTROL = -1;
/** A stretch of messages between two looks at the clock is to take no longer than this, ms. */
const STRETCH = LONGEST_TURN / 2;
/** A stretch that was cheap makes the next one at most so many times as long. */
const GROWTH = 4;
/** What a batch that waits costs beside its bytes. */
const ENTRY_BYTES = 256;

interface Waiting {
  readonly batch: Uint8Array;
  /** Batches of the session before it. */
  readonly number: number;
  next: Waiting | undefined;
}

/**
 * What a session received and hands over: at once, and in runs that are as long as can be, for as long as that is
 * cheap. What is dear to handle is handed over in parts: after `LONGEST_TURN` the rest of the batch, and all that comes
 * behind it, waits for a later turn. The order stays; nothing but the time between two messages changes.
 */
export class Incoming implements Resumable {
  /** Messages handed over. */
  messages = 0;
  /** Of the batch that is being handed over: the batches of the session before it (PROTOCOL.md M-26). */
  number = 0;
  /** The peer's BYE is among what waits: nothing is missing behind it. */
  saidBye = false;
  /** Batches received in the session. */
  private received = 0;
  private handing = false;
  /** The batch that is being handed over, and how far; undefined: there is none. */
  private batch: Uint8Array | undefined;
  private at = 0;
  private first: Waiting | undefined;
  private last: Waiting | undefined;
  private waitingBytes = 0;
  /** Most that may wait, bytes: what the peer may send without being granted more, which is the window and a message. */
  private readonly mostWaiting: number;

  /** Most messages of the next stretch; and of one that is not of the same line as the last. */
  private stretch = UNKNOWN;
  private unknown = UNKNOWN;
  /** The line of the last message. */
  private line = CONTROL;
  /** The last stretch was of several lines: what one of them costs is not known. */
  private mixed = false;

  constructor(
    private readonly session: Session,
    private readonly context: SessionContext,
    private readonly events: SessionEvents,
  ) {
    this.mostWaiting = context.limits.receiveWindow + context.limits.maxMessage;
  }

  /** Some of what was received is still to be handed over in a later turn. */
  get behind(): boolean {
    return this.batch !== undefined && !this.handing;
  }

  /** A batch that counts and is not handed over. */
  skip(): void {
    this.received++;
  }

  /** Hands over a batch whose headers are good, received at `now` of the clock. It may end later, see `behind`. */
  take(batch: Uint8Array, now: number): void {
    const number = this.received++;
    if (this.batch !== undefined) {
      this.wait({ batch, number, next: undefined }, now);
      return;
    }
    this.batch = batch;
    this.at = 0;
    this.number = number;
    if (this.hand(now, now + LONGEST_TURN)) this.context.turns.add(this);
  }

  private wait(entry: Waiting, now: number): void {
    if (this.last === undefined) this.first = entry;
    else this.last.next = entry;
    this.last = entry;
    this.waitingBytes += entry.batch.length + ENTRY_BYTES;
    if (entry.batch[OFFSET.type] === Type.BYE) this.saidBye = true;
    // as much as is too much is handed over now, so that the transport holds up a peer that sends on and on
    if (this.waitingBytes > this.mostWaiting && !this.handing && !this.hand(now, now)) this.context.turns.remove(this);
  }

  resume(until: number): boolean {
    return this.hand(this.context.clock.now(), until);
  }

  /** The session is over: what waits is dropped. */
  clear(): void {
    this.batch = undefined;
    this.first = undefined;
    this.last = undefined;
    this.waitingBytes = 0;
    this.context.turns.remove(this);
  }

  /** The one guard around everything that a batch causes. */
  private hand(now: number, until: number): boolean {
    this.handing = true;
    try {
      return this.handOn(now, until);
    } catch (error) {
      this.clear();
      this.session.failed(error);
      return false;
    } finally {
      this.handing = false;
    }
  }

  /** Stretch by stretch until the clock is at `until`, and on while too much waits. Returns whether there is more. */
  private handOn(began: number, until: number): boolean {
    let now = began;
    for (let { batch } = this; batch !== undefined; batch = this.batch) {
      const before = this.messages;
      this.handStretch(batch);
      if (this.batch === undefined) return false;
      if (this.at === batch.length) this.next();
      const then = now;
      now = this.context.clock.now();
      this.learn(now - then, this.messages - before);
      if (now >= until && this.waitingBytes <= this.mostWaiting) return this.batch !== undefined;
    }
    return false;
  }

  private next(): void {
    const entry = this.first;
    this.batch = entry?.batch;
    this.at = 0;
    if (entry === undefined) return;
    this.number = entry.number;
    this.waitingBytes -= entry.batch.length + ENTRY_BYTES;
    this.first = entry.next;
    if (this.first === undefined) this.last = undefined;
  }

  private handStretch(batch: Uint8Array): void {
    let left = this.mixed && this.stretch > this.unknown ? this.unknown : this.stretch;
    const begin = this.at;
    this.mixed = false;
    while (this.at < batch.length && left > 0 && this.batch === batch) {
      const { at } = this;
      const type = batch[at + OFFSET.type]!;
      const line = isData(type) ? readU32(batch, at + OFFSET.line) : CONTROL;
      if (line !== this.line || line === CONTROL) {
        if (left > this.unknown) {
          // the one before is measured alone
          if (at > begin) return;
          left = this.unknown;
        }
        if (at > begin || line === CONTROL) this.mixed = true;
        this.line = line;
      }
      left -= line === CONTROL ? this.handControl(batch, at, type) : this.handRun(batch, at, type, line, left);
    }
  }

  private handControl(batch: Uint8Array, at: number, type: number): number {
    this.messages++;
    this.at = at + readU32(batch, at);
    if (type >= Type.HELLO && type <= Type.CREDIT) this.session.receiveOwn(batch, at, type);
    else this.events.onControl(this.session, type, batch, at);
    return 1;
  }

  /** Hands over the longest run of at most `most` messages that can be handled as one. Returns how many they are. */
  private handRun(batch: Uint8Array, start: number, type: number, line: number, most: number): number {
    let end = start + readU32(batch, start);
    let count = 1;
    if ((batch[start + OFFSET.flags]! & BOUNDARY_FLAGS) === 0) {
      const generation = readU32(batch, start + OFFSET.generation);
      while (
        end < batch.length &&
        count < most &&
        batch[end + OFFSET.type] === type &&
        (batch[end + OFFSET.flags]! & BOUNDARY_FLAGS) === 0 &&
        readU32(batch, end + OFFSET.line) === line &&
        readU32(batch, end + OFFSET.generation) === generation
      ) {
        end += readU32(batch, end);
        count++;
      }
    }
    this.messages += count;
    this.at = end;
    this.events.onData(this.session, batch, start, end, count);
    return count;
  }

  /** @param elapsed ms that `count` messages took */
  private learn(elapsed: number, count: number): void {
    const fits = elapsed > 0 ? Math.max(1, Math.floor((count * STRETCH) / elapsed)) : Number.POSITIVE_INFINITY;
    if (fits < this.stretch) this.stretch = fits;
    else if (count >= this.stretch) this.stretch = Math.min(fits, this.stretch * GROWTH);
    // there are dear ones among them: not forgotten at once while the others are cheap
    if (fits < this.unknown) this.unknown = fits;
    else if (this.unknown < UNKNOWN) this.unknown++;
  }
}
