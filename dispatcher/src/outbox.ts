import {
  Flag,
  type Header,
  OFFSET,
  type payload,
  readU32,
  readU53,
  type Session,
  singleMessage,
  Type,
} from '@trunkline/proto';
import type { Core } from './core.js';
import type { Hold } from './hold.js';
import { keyOf } from './kept.js';
import type { Member } from './member.js';

/** Memory that a received batch may hold however small it is, bytes (ZeroMQ's library receives into blocks of 8 KiB). */
const RECEIVE_BLOCK = 16 * 1024;
/**
 * From this size on runs that may be dropped are copied into buffers that are used again. Kept by reference, the batches
 * of a peer that never keeps up would grow old, and the garbage collector and cold memory would slow everybody.
 */
const RECYCLE_FROM = 16 * 1024;
/** Buffers that wait for their next use. */
const MOST_SPARE = 4;
/** Dead entries that may stand in the queue before they are swept out of it. */
const SWEEP_FROM = 256;
const NOTHING = new Uint8Array(0);
/** What an entry that is no response has none of. */
const PLAIN = { hold: undefined, kept: false, key: undefined, dead: false, own: undefined };

/** Responses, or one message that is not a response (`count` 0), waiting for credit. */
interface Entry {
  readonly member: Member;
  buffer: Uint8Array;
  readonly start: number;
  readonly end: number;
  readonly count: number;
  /** Withholds the provider's credit until the entry is gone (overflow `block`). */
  readonly hold: Hold | undefined;
  /** Part of a snapshot, which is as long as the service's `keep` allows. */
  readonly kept: boolean;
  /** Set where only the newest of its key waits (overflow `latest`). */
  readonly key: string | undefined;
  /** Sent, replaced by a newer one of its key, or dropped. */
  dead: boolean;
  /** The buffer, where it is the outbox's own and may be used again if it was never sent. */
  readonly own: Uint8Array | undefined;
}

/**
 * What waits for a session's credit, in order, within a bound of bytes. Over the bound each member's `overflow` decides.
 * While there is credit everything goes straight to the session and nothing is ever queued.
 */
export class Outbox {
  bytes = 0;
  /** Of `bytes`: what is no response, and what is part of a snapshot. */
  told = 0;
  kept = 0;
  /** Of `bytes`: responses of members with overflow `block` that hold no provider back. */
  private unheld = 0;
  /** The session is about to be ended because it fell behind: nothing is taken any more. */
  doomed = false;
  private entries: Entry[] = [];
  private head = 0;
  /** Dead entries from `head` on. */
  private dead = 0;
  /** Where to look first for something that may be dropped; everything before it may not. */
  private droppable = 0;
  /** Of each member: what waits and is not dead, and of that the newest by key. */
  private readonly waitingOf = new Map<Member, Set<Entry>>();
  private readonly latest = new Map<Member, Map<string, Entry>>();
  private readonly gapped = new Set<Member>();
  private spare: Uint8Array[] = [];

  constructor(
    private readonly session: Session,
    private readonly core: Core,
    /** The hold of the run being delivered, made on demand. */
    private readonly currentHold: () => Hold | undefined,
  ) {}

  /** Places in the queue, dead ones included: bounded by what waits, however much was dropped. */
  get length(): number {
    return this.entries.length - this.head;
  }

  /** Keys of which the newest waits. */
  get remembered(): number {
    let count = 0;
    for (const keys of this.latest.values()) count += keys.size;
    return count;
  }

  get waiting(): boolean {
    return this.head < this.entries.length;
  }

  deliver(member: Member, buffer: Uint8Array, start: number, end: number, count: number): void {
    if (this.doomed || this.session.state !== 'open') return;
    if (end - start > this.session.peerMaxMessage) {
      this.deliverFitting(member, buffer, start, end);
      return;
    }
    if (!this.waiting && this.session.credit > 0) {
      if (member.missed !== undefined) member.tellMissed();
      this.session.sendData(buffer, start, end, count);
      return;
    }
    this.queue(member, buffer, start, end, count);
  }

  /** A run that is longer than the largest message the peer takes: message by message, what is too large is a gap. */
  private deliverFitting(member: Member, buffer: Uint8Array, start: number, end: number): void {
    for (let at = start; at < end; ) {
      const next = at + readU32(buffer, at);
      if (next - at <= this.session.peerMaxMessage) this.deliver(member, buffer, at, next, 1);
      else {
        this.miss(member, buffer, at, next, 1);
        // there may be no other response to tell it with
        if (!this.waiting) this.drained();
      }
      at = next;
    }
  }

  /** A message of a member that is not a response: in its place, never dropped. */
  tell(member: Member, message: Uint8Array): void {
    if (this.doomed || this.session.state !== 'open') return;
    if (!this.waiting) {
      if (member.missed !== undefined) member.tellMissed();
      this.session.sendEncoded(message);
      return;
    }
    const end = message.length;
    this.push({ member, buffer: message, start: 0, end, count: 0, ...PLAIN });
    // a peer that takes nothing and is told ever more is no peer
    if (this.told > this.core.outboxBytes) this.disconnect();
  }

  /** As `tell`, of a message that takes no memory of its own unless it has to wait. */
  tellWritten(member: Member, header: Header, written: payload.Written): void {
    if (this.waiting) {
      this.tell(member, singleMessage(header, written.bytes.subarray(0, written.length)));
      return;
    }
    if (this.doomed || this.session.state !== 'open') return;
    if (member.missed !== undefined) member.tellMissed();
    this.session.sendWritten(header, written);
  }

  private queue(member: Member, buffer: Uint8Array, start: number, end: number, count: number): void {
    switch (member.overflow) {
      case 'block':
        this.pushBlocking(member, buffer, start, end, count);
        return;
      case 'latest':
        for (let at = start; at < end; at += readU32(buffer, at)) this.queueLatest(member, buffer, at);
        return;
      case 'disconnect':
        // what was kept does not mean that it fell behind: it would be the same after every reconnect
        if (!isKept(buffer, start) && this.bytes - this.kept + end - start > this.core.outboxBytes) this.disconnect();
        else this.pushCopy(member, buffer, start, end, count, undefined);
        return;
      case 'dropOldest':
        if (this.makeRoom(end - start)) this.pushCopy(member, buffer, start, end, count, undefined);
        else this.miss(member, buffer, start, end, count);
    }
  }

  /** Nothing is dropped: the provider waits. What comes from a return handler's timer has no provider that could. */
  private pushBlocking(member: Member, buffer: Uint8Array, start: number, end: number, count: number): void {
    const hold = this.currentHold();
    this.pushCopy(member, buffer, start, end, count, hold);
    if (this.unheld > this.core.outboxBytes) this.disconnect();
  }

  private disconnect(): void {
    this.doomed = true;
    this.clear();
    this.core.disconnect(this.session);
  }

  /** Without credit only the newest response of a key waits. */
  private queueLatest(member: Member, buffer: Uint8Array, at: number): void {
    const end = at + readU32(buffer, at);
    const key = keyOf(buffer, at);
    const older = this.latest.get(member)?.get(key);
    if (older !== undefined) {
      this.kill(older);
      this.core.counters.conflated++;
    }
    if (!this.makeRoom(end - at)) {
      this.miss(member, buffer, at, end, 1);
      return;
    }
    const entry = this.pushCopy(member, buffer, at, end, 1, undefined, key);
    const keys = this.latest.get(member);
    if (keys === undefined) this.latest.set(member, new Map([[key, entry]]));
    else keys.set(key, entry);
  }

  private forgetKey(member: Member, key: string, entry: Entry): void {
    const keys = this.latest.get(member);
    if (keys?.get(key) !== entry) return;
    keys.delete(key);
    if (keys.size === 0) this.latest.delete(member);
  }

  /** Drops the oldest responses that may be dropped until `bytes` fit. */
  private makeRoom(bytes: number): boolean {
    const bound = this.core.outboxBytes;
    this.droppable = Math.max(this.droppable, this.head);
    while (this.bytes + bytes > bound && this.droppable < this.entries.length) {
      const entry = this.entries[this.droppable++]!;
      const { member } = entry;
      if (entry.dead || entry.count === 0 || (member.overflow !== 'dropOldest' && member.overflow !== 'latest'))
        continue;
      this.miss(member, entry.buffer, entry.start, entry.end, entry.count);
      this.kill(entry);
      if (entry.own !== undefined && this.spare.length < MOST_SPARE) this.spare.push(entry.own);
    }
    return this.bytes + bytes <= bound;
  }

  private miss(member: Member, buffer: Uint8Array, start: number, end: number, count: number): void {
    const first = readU53(buffer, start + OFFSET.sequence);
    member.miss(count, first, member.lane.consecutive ? first + count - 1 : lastSequence(buffer, start, end));
    this.gapped.add(member);
  }

  /**
   * Keeps a part of a batch without keeping the whole batch alive. A small batch is copied too: a transport may have
   * received it into a larger block of memory.
   */
  private pushCopy(
    member: Member,
    buffer: Uint8Array,
    start: number,
    end: number,
    count: number,
    hold: Hold | undefined,
    key?: string,
  ): Entry {
    const length = end - start;
    const more = { count, hold, kept: isKept(buffer, start), key, dead: false };
    let entry: Entry;
    if (member.overflow === 'dropOldest' && length >= RECYCLE_FROM) {
      const own = this.room(length);
      own.set(buffer.subarray(start, end));
      entry = { member, buffer: own, start: 0, end: length, ...more, own };
    } else if (length * 2 >= Math.max(buffer.buffer.byteLength, RECEIVE_BLOCK)) {
      entry = { member, buffer, start, end, ...more, own: undefined };
    } else {
      entry = { member, buffer: buffer.slice(start, end), start: 0, end: length, ...more, own: undefined };
    }
    this.push(entry);
    hold?.retain();
    return entry;
  }

  /** A buffer for `length` bytes and less than twice as many. */
  private room(length: number): Uint8Array {
    const capacity = 2 ** Math.ceil(Math.log2(length));
    const at = this.spare.findIndex((each) => each.length === capacity);
    if (at < 0) return this.core.allocate(capacity);
    return this.spare.splice(at, 1)[0]!;
  }

  private push(entry: Entry): void {
    if (this.dead >= SWEEP_FROM && this.dead * 2 > this.entries.length - this.head) this.sweep();
    this.entries.push(entry);
    const waiting = this.waitingOf.get(entry.member);
    if (waiting === undefined) this.waitingOf.set(entry.member, new Set([entry]));
    else waiting.add(entry);
    this.account(entry, entry.end - entry.start);
  }

  private account({ member, count, kept, hold }: Entry, bytes: number): void {
    this.bytes += bytes;
    if (count === 0) this.told += bytes;
    else if (kept) this.kept += bytes;
    else if (hold === undefined && member.overflow === 'block') this.unheld += bytes;
  }

  /** Its bytes go at once; its place when the queue comes to it, or with the next sweep. */
  private kill(entry: Entry): void {
    const { member, key } = entry;
    entry.dead = true;
    entry.buffer = NOTHING;
    this.dead++;
    const waiting = this.waitingOf.get(member);
    if (waiting?.delete(entry) && waiting.size === 0) this.waitingOf.delete(member);
    if (key !== undefined) this.forgetKey(member, key, entry);
    this.account(entry, entry.start - entry.end);
    entry.hold?.release();
  }

  /** A peer that takes nothing must not make the queue longer for ever by what is dropped from it. */
  private sweep(): void {
    this.entries = this.entries.filter((entry, index) => index >= this.head && !entry.dead);
    this.head = 0;
    this.dead = 0;
    this.droppable = 0;
  }

  /** The session has credit again. */
  drain(): void {
    while (this.waiting && this.session.state === 'open') {
      const entry = this.entries[this.head]!;
      if (entry.count > 0 && !entry.dead && this.session.credit <= 0) break;
      this.head++;
      if (!entry.dead) this.sendEntry(entry);
      this.dead--;
    }
    this.compact();
    if (!this.waiting) this.drained();
  }

  private sendEntry(entry: Entry): void {
    const { member, buffer } = entry;
    this.kill(entry);
    if (member.left) return;
    // before the ACCEPTED the session does not know the line that a GAP is about
    const begins = entry.count === 0 && buffer[entry.start + OFFSET.type] === Type.ACCEPTED;
    if (member.missed !== undefined && !begins) member.tellMissed();
    if (entry.count === 0) this.session.sendEncoded(buffer);
    else this.session.sendData(buffer, entry.start, entry.end, entry.count);
  }

  private compact(): void {
    if (this.head < 1024 && this.waiting) return;
    this.entries.splice(0, this.head);
    this.droppable = Math.max(0, this.droppable - this.head);
    this.head = 0;
  }

  private drained(): void {
    for (const member of this.gapped) if (!member.left) member.tellMissed();
    this.gapped.clear();
    this.spare = [];
  }

  /** A member left: nothing of it is sent any more. */
  forget(member: Member): void {
    this.gapped.delete(member);
    for (const entry of this.waitingOf.get(member) ?? []) this.kill(entry);
  }

  /** The session is gone. */
  clear(): void {
    for (let index = this.head; index < this.entries.length; index++) {
      const entry = this.entries[index]!;
      if (!entry.dead) this.kill(entry);
    }
    this.entries = [];
    this.head = 0;
    this.dead = 0;
    this.droppable = 0;
    this.latest.clear();
    this.waitingOf.clear();
    this.gapped.clear();
    this.spare = [];
  }
}

function lastSequence(buffer: Uint8Array, start: number, end: number): number {
  let last = start;
  for (let at = start; at < end; at += readU32(buffer, at)) last = at;
  return readU53(buffer, last + OFFSET.sequence);
}

function isKept(buffer: Uint8Array, at: number): boolean {
  return (buffer[at + OFFSET.flags]! & Flag.SNAPSHOT) !== 0;
}
