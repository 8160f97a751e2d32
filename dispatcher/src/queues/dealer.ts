import { readU32, Timer } from '@trunkline/proto';
import type { CachedChunk } from './chunk-cache.js';
import { damageOf } from './chunk-source.js';
import type { Group } from './group.js';
import type { Member } from './member.js';
import { isTimed, timesOf } from './stored-message.js';

/** A run that is handed over at once is no longer than this, unless it is one message. */
const RUN_BYTES = 65536;
/** Where several members have room, one gets at most this many messages at a time. */
const MOST_AT_ONCE = 64;
/** Messages that were read and wait for something else than a member: beyond it nothing new is read. */
const MAX_HELD_BACK = 100_000;
/** So many messages that are not for the group are passed over in one go; then others have their turn. */
const MOST_PASSED = 2048;
/** After the store could not be read, ms. */
const READ_AGAIN = 1000;
/** A message that no member can take waits so long, ms. */
const TOO_LARGE_AGAIN = 1000;

/** Hands the messages of a group to its members: the one with the fewest first, equal ones in turn. */
export class Dealer {
  /** Chunks that were read from the store for members that are behind. */
  private fetched: readonly CachedChunk[] = [];
  private reading = false;
  private running = false;
  private closed = false;
  private passed = 0;
  private turn = 0;
  private cursor: { chunk: CachedChunk; sequence: number; at: number } | undefined;
  private readonly retry = new Timer({ onTimer: () => this.run() });

  constructor(private readonly group: Group) {}

  run(): void {
    if (this.running || this.closed) return;
    this.running = true;
    this.passed = 0;
    while (this.step()) {
      if (this.passed < MOST_PASSED) continue;
      this.group.queue.timers.start(this.retry, 0);
      break;
    }
    this.running = false;
  }

  /** Returns whether there may be more to do. */
  private step(): boolean {
    const { group } = this;
    const member = this.least();
    if (member === undefined) return false;
    if (group.ready.size > 0) return this.deliverAgain(member);
    if (group.returned.size > 0) {
      if (!group.counting) group.bump(member.room);
      return group.ready.size > 0 || !group.settling;
    }
    return !group.settling && this.deliverNew(member);
  }

  private least(): Member | undefined {
    const { members } = this.group;
    let best: Member | undefined;
    for (let step = 0; step < members.length; step++) {
      const member = members[(this.turn + step) % members.length]!;
      if (member.room <= 0 || !member.port.ready) continue;
      if (best === undefined || member.held.size < best.held.size) best = member;
    }
    return best;
  }

  /** How many messages go to the member before the others are looked at again. */
  private share(member: Member, available: number): number {
    let others = 0;
    let load = Number.POSITIVE_INFINITY;
    for (const other of this.group.members) {
      if (other === member || other.room <= 0 || !other.port.ready) continue;
      others++;
      load = Math.min(load, other.held.size);
    }
    const { room, window, held } = member;
    if (others === 0) return room;
    const fair = Math.floor(available / (others + 1));
    const slice = Math.max(1, Math.min(fair, window >>> 2, MOST_AT_ONCE));
    return Math.min(room, Math.max(slice, load - held.size));
  }

  private deliverNew(member: Member): boolean {
    const { group } = this;
    const { queue, next } = group;
    const end = Math.min(queue.last, group.reserved);
    if (next > end) {
      if (next <= queue.last) group.touch();
      return false;
    }
    if (group.heldBack >= MAX_HELD_BACK) return false;
    const chunk = this.chunkAt(next);
    if (chunk === undefined) return false;
    const { bytes } = chunk;
    const careful = group.filter !== undefined || queue.removed.size > 0;
    const bound = Math.min(chunk.last, end, next + this.share(member, end - next + 1) - 1);
    const start = this.offsetOf(chunk, next);
    const most = Math.min(RUN_BYTES, member.port.maxMessage);
    let at = start;
    let sequence = next;
    let skip = false;
    while (sequence <= bound) {
      const length = readU32(bytes, at);
      if (length > member.port.maxMessage || (sequence > next && at + length - start > most)) break;
      skip = (careful || isTimed(bytes, at)) && !this.isDue(chunk, at, sequence);
      if (skip) break;
      at += length;
      sequence++;
    }
    this.read(chunk, sequence, at);
    if (sequence > next) this.hand(member, chunk, start, at, next, sequence - 1, 1);
    if (skip) this.pass(chunk, at, sequence);
    else if (sequence === next) this.tooLarge(chunk, at, sequence);
    return true;
  }

  private read(chunk: CachedChunk, sequence: number, at: number): void {
    this.group.next = sequence;
    if (sequence <= chunk.last) this.cursor = { chunk, sequence, at };
    else this.release(chunk);
  }

  /** A group at the end of its queue keeps no chunk in memory. */
  private release({ last }: CachedChunk): void {
    this.cursor = undefined;
    const newest = this.fetched[this.fetched.length - 1];
    if (newest !== undefined && newest.last <= last) this.fetched = [];
  }

  private offsetOf(chunk: CachedChunk, sequence: number): number {
    const { cursor } = this;
    if (cursor !== undefined && cursor.chunk === chunk && cursor.sequence === sequence) return cursor.at;
    return chunk.offsetOf(sequence);
  }

  /**
   * Whether a message is the group's at all. Asked again for redeliveries: after a restart those are all that may have
   * been delivered before, whether they were looked at or not.
   */
  private isWanted(bytes: Uint8Array, at: number, sequence: number): boolean {
    const { queue, filter } = this.group;
    return !queue.removed.has(sequence) && (filter === undefined || filter.matches(bytes, at));
  }

  /** Whether a message is for the group, now. */
  private isDue({ bytes }: CachedChunk, at: number, sequence: number): boolean {
    const { queue } = this.group;
    if (!this.isWanted(bytes, at, sequence)) return false;
    if (!isTimed(bytes, at)) return true;
    const { due, expires } = timesOf(bytes, at);
    const now = queue.time();
    return due <= now && now < expires;
  }

  /** A message that is not for the group, or not yet. */
  private pass(chunk: CachedChunk, at: number, sequence: number): void {
    const { group } = this;
    const { bytes } = chunk;
    const { queue } = group;
    this.passed++;
    this.read(chunk, sequence + 1, at + readU32(bytes, at));
    if (this.isWanted(bytes, at, sequence)) {
      const { due, expires } = timesOf(bytes, at);
      const now = queue.time();
      if (now < expires && due > now && due < expires) {
        // not delivered yet: its first delivery is no redelivery
        group.counts.set(sequence, 0);
        group.delay(sequence, due, false);
        return;
      }
      group.expire(sequence, 0);
      return;
    }
    group.settle(sequence, sequence);
  }

  /** No frame may be larger than its receiver takes; the message counts as delivered in vain. */
  private tooLarge(chunk: CachedChunk, at: number, sequence: number): void {
    this.read(chunk, sequence + 1, at + readU32(chunk.bytes, at));
    this.group.giveBack([{ first: sequence, last: sequence }], TOO_LARGE_AGAIN, 'too large for the consumer');
  }

  private deliverAgain(member: Member): boolean {
    const { group } = this;
    const { ready } = group;
    const { first, last } = ready.head(Math.min(member.room, MOST_AT_ONCE))!;
    if (group.isDone(first)) {
      ready.remove(first, first);
      return true;
    }
    const chunk = this.chunkAt(first);
    if (chunk === undefined) return false;
    const { bytes } = chunk;
    const start = chunk.offsetOf(first);
    if (!this.isDueAgain(chunk, start, first)) return true;
    const length = readU32(bytes, start);
    if (length > member.port.maxMessage) {
      ready.remove(first, first);
      group.giveBack([{ first, last: first }], TOO_LARGE_AGAIN, 'too large for the consumer');
      return true;
    }
    const count = group.countOf(first);
    let at = start + length;
    let sequence = first + 1;
    while (sequence <= Math.min(last, chunk.last) && group.countOf(sequence) === count && !group.isDone(sequence)) {
      if (isTimed(bytes, at) || !this.isWanted(bytes, at, sequence)) break;
      if (at + readU32(bytes, at) - start > Math.min(RUN_BYTES, member.port.maxMessage)) break;
      at += readU32(bytes, at);
      sequence++;
    }
    ready.remove(first, sequence - 1);
    if (count > 1) group.redelivered += sequence - first;
    this.hand(member, chunk, start, at, first, sequence - 1, count);
    return true;
  }

  /** A message may have expired meanwhile, or its delay was forgotten at a restart. */
  private isDueAgain(chunk: CachedChunk, at: number, sequence: number): boolean {
    const { group } = this;
    if (!this.isWanted(chunk.bytes, at, sequence)) {
      group.ready.remove(sequence, sequence);
      group.settle(sequence, sequence);
      return false;
    }
    if (!isTimed(chunk.bytes, at)) return true;
    const { due, expires } = timesOf(chunk.bytes, at);
    const now = group.queue.time();
    if (due <= now && now < expires) return true;
    group.ready.remove(sequence, sequence);
    if (due > now && due < expires) {
      group.counts.set(sequence, group.countOf(sequence) - 1);
      group.delay(sequence, due, false);
    } else {
      // the count of this delivery, which does not take place, is stored already
      group.expire(sequence, group.countOf(sequence) - 1);
    }
    return false;
  }

  private hand(
    member: Member,
    { bytes }: CachedChunk,
    start: number,
    end: number,
    first: number,
    last: number,
    delivery: number,
  ): void {
    const { group } = this;
    const count = last - first + 1;
    const deadline = group.queue.deadline();
    member.held.add(first, last, deadline);
    member.delivered += count;
    group.arm(deadline);
    this.turn = (group.members.indexOf(member) + 1) % group.members.length;
    member.port.deliver(bytes, start, end, count, delivery);
  }

  // ---- where messages come from ----

  /** The chunk that has a message, if it is in memory; otherwise it is read, and dealing goes on then. */
  private chunkAt(sequence: number): CachedChunk | undefined {
    const { cursor } = this;
    if (cursor !== undefined && cursor.chunk.first <= sequence && cursor.chunk.last >= sequence) return cursor.chunk;
    const cached = this.group.queue.chunks.find(sequence);
    if (cached !== undefined) {
      this.fetched = [];
      return cached;
    }
    const fetched = this.fetched.find(({ first, last }) => first <= sequence && last >= sequence);
    if (fetched === undefined) this.fetch(sequence);
    return fetched;
  }

  private fetch(sequence: number): void {
    const { queue } = this.group;
    if (this.reading) return;
    this.reading = true;
    queue.chunks.read(sequence).then(
      (chunks) => {
        this.reading = false;
        if (this.group.closed || this.closed) return;
        this.fetched = chunks;
        const first = chunks[0]?.first ?? queue.last + 1;
        if (first > sequence && sequence > queue.floor) this.group.moveUp(sequence, first - 1, 'damaged');
        this.run();
      },
      (error: unknown) => this.failed(sequence, error),
    );
  }

  private failed(sequence: number, error: unknown): void {
    const { group } = this;
    this.reading = false;
    if (group.closed || this.closed) return;
    const damage = damageOf(error);
    group.queue.log.error({ group: group.name, sequence, error: String(error) }, 'a queue cannot be read');
    if (damage === undefined || damage.last < sequence) {
      group.queue.timers.start(this.retry, READ_AGAIN);
      return;
    }
    group.moveUp(Math.max(sequence, damage.first), damage.last, 'damaged');
    this.run();
  }

  close(): void {
    this.closed = true;
    this.group.queue.timers.stop(this.retry);
  }
}
