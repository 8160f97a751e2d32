import { type Clock, type Log, OFFSET, readU32, readU53, Timer, type Timers, TrunklineError } from '@trunkline/proto';
import { ChunkSource } from './chunk-source.js';
import { Group } from './group.js';
import { type GroupState, newGroup } from './group-record.js';
import { type Batch, Inlet } from './inlet.js';
import { Ledger } from './ledger.js';
import type { Member, MemberPort } from './member.js';
import type { GroupStart, MessageFilter, QueueOptions } from './options.js';
import type { Confirm, Publisher, PublishRefusal } from './publisher.js';
import { type Range, Ranges } from './ranges.js';
import type { Store } from './store.js';
import { storedAt } from './stored-message.js';

const MAX_GROUPS = 10_000;
const MIN_AGE_CHECK = 50;
const MAX_AGE_CHECK = 60_000;

/** What a queue needs of the others. */
export interface QueueHost {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Log;
  readonly store: Store | undefined;
  /** Milliseconds since 1970 that never go back, not even when the date does. */
  time(): number;
  /** Why nothing is taken for the store now, or undefined. */
  refusal(): PublishRefusal | undefined;
  /** The next commit is about the queue too; if not `urgent`, one that takes place anyway, or soon. */
  queueChanged(queue: Queue, urgent: boolean): void;
  groupChanged(group: Group, urgent: boolean): void;
  publisherChanged(queue: Queue, publisher: Publisher | undefined, id: string): void;
  /** Takes a message to the dead letter queue, which the queue's options name. */
  bury(queue: Queue, letter: DeadLetter, confirm: Confirm): void;
  /** @throws TrunklineError FILTER_INVALID */
  compile(filter: string): MessageFilter;
}

export interface DeadLetter {
  readonly bytes: Uint8Array;
  readonly at: number;
  readonly group: string;
  readonly sequence: number;
  readonly count: number;
  readonly reason: string;
}

/** What is stored of a queue beside its messages. */
export interface QueueState {
  readonly last: number;
  readonly floor: number;
  readonly removed: readonly Range[];
}

/**
 * One stored copy of messages, and any number of groups that read it. Knows neither service codes nor sessions.
 * Sequences go from 1 without a hole.
 */
export class Queue {
  /** The last message that is stored. */
  last = 0;
  /** The last message that has a sequence; beyond `last` they are in commits under way. */
  assigned = 0;
  /** Nothing up to here is there for anybody. */
  floor = 0;
  /** No group's position is below this; it is looked for anew when the group that was there goes on. */
  private least = Number.POSITIVE_INFINITY;
  /** Single messages that an operator took out. */
  readonly removed = new Ranges();
  readonly groups = new Map<string, Group>();
  readonly privates = new Set<Group>();
  published = 0;
  dropped = 0;
  closed = false;
  /** The next commit stores its record, and with it gives back what is below `floor`, or all there is. */
  recordDue = false;
  trimDue = false;
  dropDue = false;
  /** Why nothing can be stored in it: a part of it is damaged. A purge makes it whole again. */
  damage: string | undefined;
  readonly inlet: Inlet;
  private readonly ledger = new Ledger();
  readonly chunks: ChunkSource;
  private readonly ageTimer = new Timer({ onTimer: () => this.checkAge() });
  private checkingAge = false;
  private storedFloor = 0;

  constructor(
    readonly host: QueueHost,
    readonly id: number,
    public options: QueueOptions,
  ) {
    this.inlet = new Inlet(this);
    this.chunks = new ChunkSource(this);
    this.watchAge();
  }

  get durable(): boolean {
    return this.options.storage === 'disk';
  }

  get timers(): Timers {
    return this.host.timers;
  }

  get clock(): Clock {
    return this.host.clock;
  }

  get log(): Log {
    return this.host.log;
  }

  time(): number {
    return this.host.time();
  }

  /** Until when a message that is delivered now has to be acknowledged. */
  deadline(): number {
    const { ackTimeout } = this.options;
    return ackTimeout === 0 ? Number.POSITIVE_INFINITY : this.time() + ackTimeout;
  }

  get depth(): number {
    return this.last - this.floor - this.removed.size;
  }

  get bytes(): number {
    return this.ledger.bytes;
  }

  /** Bounds as they are from now on. */
  reconfigure(options: QueueOptions): void {
    this.options = options;
    this.watchAge();
    this.enforceBounds();
    for (const group of this.allGroups()) group.arm(this.deadline());
  }

  /** After the store was opened. */
  restore(state: QueueState, stored: { first: number; last: number; bytes: number } | undefined): void {
    this.last = Math.max(state.last, stored?.last ?? 0);
    this.assigned = this.last;
    this.storedFloor = state.floor;
    this.floor = Math.max(state.floor, stored === undefined ? this.last : stored.first - 1);
    for (const { first, last } of state.removed) this.removed.add(first, last);
    if (this.floor > 0) this.removed.remove(1, this.floor);
    if (stored !== undefined) this.ledger.append(stored.first, stored.last, stored.bytes, stored.last > stored.first);
  }

  /** The store says that a part of it cannot be read; the parts around it may. */
  restoreDamage(last: number, message: string): void {
    this.damage ??= message;
    this.floor = this.storedFloor;
    this.last = Math.max(this.last, last);
    this.assigned = this.last;
  }

  // ---- storing ----

  /** A batch is stored. Batches are stored in the order they were cut. */
  stored({ chunk, runs }: Batch): void {
    this.last = chunk.last;
    this.published += chunk.last - chunk.first + 1;
    this.ledger.append(chunk.first, chunk.last, chunk.bytes.length);
    this.chunks.cache.append(chunk);
    this.inlet.stored(runs);
    this.enforceBounds();
    for (const group of this.allGroups()) group.pump();
  }

  /** Nothing of a batch was stored, nor of any later one. */
  failed({ chunk, runs }: Batch, refusal: PublishRefusal): void {
    this.assigned = Math.min(this.assigned, chunk.first - 1);
    this.inlet.failed(runs, refusal);
  }

  // ---- groups ----

  *allGroups(): Generator<Group> {
    yield* this.groups.values();
    yield* this.privates;
  }

  /**
   * A consumer enters a group, which begins with it if need be; without a name, one of its own that ends with it.
   * A group has one filter: that of the first of its members. Others ask for none, or for the same.
   * @throws TrunklineError FILTER_INVALID, LIMIT_EXCEEDED
   */
  join(name: string, filter: string, start: GroupStart, port: MemberPort, window: number): Member {
    const text = filter.trim();
    const group = name === '' ? undefined : this.groups.get(name);
    if (group !== undefined) {
      this.refilter(group, text);
      return group.join(port, window);
    }
    if (this.groups.size >= MAX_GROUPS) {
      throw new TrunklineError('LIMIT_EXCEEDED', `the queue has ${MAX_GROUPS} groups`, { retryable: true });
    }
    const compiled = text === '' ? undefined : this.host.compile(text);
    const after = start === 'earliest' ? this.floor : start === 'latest' ? this.last : start.after;
    return this.openGroup(name, compiled, after).join(port, window);
  }

  private refilter(group: Group, text: string): void {
    const { filter } = group;
    if (text !== '' && text !== filter?.text) {
      if (group.members.length > 0) {
        const other = filter === undefined ? 'no filter' : `the filter ${filter.text}`;
        throw new TrunklineError('FILTER_INVALID', `the group ${group.name} has ${other}`);
      }
      group.filter = this.host.compile(text);
      group.touch();
    }
    if (group.filter?.broken !== undefined) throw group.filter.broken;
  }

  /** A new group; without a name a private one. `after`: the messages above it are its. */
  openGroup(name: string, filter: MessageFilter | undefined, after: number): Group {
    const position = Math.min(this.last, Math.max(this.floor, after));
    return this.addGroup(name, filter, newGroup(position));
  }

  private addGroup(name: string, filter: MessageFilter | undefined, state: Omit<GroupState, 'filter'>): Group {
    const group = this.putGroup(name, filter, state);
    group.touch();
    return group;
  }

  /** After the store was opened; `groupsRestored` follows when all are there. */
  putGroup(name: string, filter: MessageFilter | undefined, state: Omit<GroupState, 'filter'>): Group {
    const group = new Group(this, name, filter, state);
    if (name === '') this.privates.add(group);
    else this.groups.set(name, group);
    this.least = Math.min(this.least, group.position);
    return group;
  }

  /** What groups have missed is told, and what all of them are past is given back. */
  groupsRestored(): void {
    for (const group of this.groups.values()) {
      if (group.position < this.floor) group.moveUp(0, this.floor, 'retention');
      group.touch();
    }
    // the stored floor may be behind what all groups are past
    this.passed(0);
  }

  closeGroup(group: Group): void {
    group.close();
    if (group.name === '') this.privates.delete(group);
    else this.groups.delete(group.name);
    this.passed(0);
  }

  groupChanged(group: Group, urgent: boolean): void {
    this.host.groupChanged(group, urgent);
  }

  /** A group's position went up from `before`: what every group is past is not needed any more. */
  passed(before: number): void {
    if (before > this.least) return;
    this.least = Number.POSITIVE_INFINITY;
    for (const group of this.allGroups()) this.least = Math.min(this.least, group.position);
    if (this.options.retain === 0) this.release();
  }

  /** Gives back what every group is past. */
  release(): void {
    const least = this.leastPosition();
    if (least > this.floor) this.raiseFloor(least);
  }

  private leastPosition(): number {
    // private groups come and go, so what is published while none is there is for the ones with a name
    return this.groups.size === 0 ? this.floor : Math.min(this.least, this.last);
  }

  // ---- retention ----

  private enforceBounds(): void {
    const { full, maxMessages, maxBytes } = this.options;
    if (full !== 'dropOldest') return;
    if (maxMessages > 0 && this.last - this.floor > maxMessages) this.drop(this.last - maxMessages);
    while (maxBytes > 0 && this.ledger.bytes > maxBytes) {
      const end = this.ledger.oldestEnd;
      if (end === undefined) return;
      this.drop(end);
    }
  }

  private drop(to: number): void {
    const upTo = Math.max(to, this.floor);
    this.dropped += upTo - this.floor;
    this.raiseFloor(upTo);
  }

  private raiseFloor(upTo: number, reason = 'retention'): void {
    this.floor = upTo;
    for (const group of this.allGroups()) if (group.position < upTo) group.moveUp(0, upTo, reason);
    if (this.removed.size > 0) this.removed.remove(1, upTo);
    if (!this.ledger.isWorthTrimming(upTo)) return;
    this.ledger.trim(upTo);
    this.chunks.cache.trim(upTo);
    this.trimDue = true;
    this.changed(false);
  }

  /** Its record is stored again. */
  private changed(urgent = true): void {
    this.recordDue = true;
    if (this.durable) this.host.queueChanged(this, urgent);
  }

  private watchAge(): void {
    const { maxAge, retain } = this.options;
    const age = Math.min(maxAge || Number.POSITIVE_INFINITY, retain || Number.POSITIVE_INFINITY);
    if (this.closed || age === Number.POSITIVE_INFINITY) this.timers.stop(this.ageTimer);
    else this.timers.start(this.ageTimer, Math.min(MAX_AGE_CHECK, Math.max(MIN_AGE_CHECK, age / 10)));
  }

  private async checkAge(): Promise<void> {
    this.watchAge();
    if (this.checkingAge) return;
    this.checkingAge = true;
    try {
      while (!this.closed && (await this.dropExpired()));
    } catch (error) {
      this.log.warn({ queue: this.id, error: String(error) }, 'the age of messages cannot be read');
    }
    this.checkingAge = false;
  }

  /** Drops what is too old in the oldest chunk; returns whether that was all of it. */
  private async dropExpired(): Promise<boolean> {
    const chunk = await this.chunks.load(this.floor + 1);
    const { maxAge, retain } = this.options;
    if (chunk === undefined || this.closed) return false;
    const now = this.time();
    const least = retain > 0 ? this.leastPosition() : this.floor;
    let upTo = this.floor;
    const { bytes } = chunk;
    for (let at = 0; at < bytes.length; at += readU32(bytes, at)) {
      const sequence = readU53(bytes, at + OFFSET.sequence);
      const age = now - storedAt(bytes, at);
      if (!(maxAge > 0 && age >= maxAge) && !(sequence <= least && age >= retain)) break;
      upTo = Math.max(upTo, sequence);
    }
    if (upTo <= this.floor) return false;
    if (upTo <= least) this.raiseFloor(upTo);
    else this.drop(upTo);
    return upTo === chunk.last;
  }

  // ---- operation ----

  /** Drops everything that is stored. Returns how many messages that were. */
  purge(): number {
    const count = this.depth;
    this.raiseFloor(this.last, 'purged');
    if (this.damage !== undefined) {
      this.damage = undefined;
      this.dropDue = true;
    }
    this.changed();
    return count;
  }

  /** Takes one message out, for all groups. What a member holds already it may still acknowledge. */
  remove(sequence: number): boolean {
    if (sequence <= this.floor || sequence > this.last || this.removed.has(sequence)) return false;
    this.removed.add(sequence, sequence);
    for (const group of this.allGroups()) {
      if (sequence >= group.next || group.isDone(sequence)) continue;
      group.settle(sequence, sequence);
      group.pump();
    }
    this.changed();
    return true;
  }

  stopTimers(): void {
    this.timers.stop(this.ageTimer);
    for (const group of this.allGroups()) group.stopTimers();
  }

  /** Ends all consumers; groups with a name stay. */
  endMembers(reason: string): void {
    for (const group of [...this.allGroups()]) {
      for (const member of [...group.members]) {
        member.port.ended(reason);
        group.leave(member);
      }
    }
  }

  /** Forgets a group. Returns whether there was one. */
  deleteGroup(name: string): boolean {
    const group = this.groups.get(name);
    if (group === undefined) return false;
    for (const { port } of group.members) port.ended(`the group ${name} was deleted`);
    this.closeGroup(group);
    return true;
  }

  /** Ends it for everybody; what waits to be stored is refused. */
  close(reason: string): void {
    this.closed = true;
    this.timers.stop(this.ageTimer);
    for (const group of [...this.allGroups()]) {
      const members = [...group.members];
      group.close();
      for (const { port } of members) port.ended(reason);
    }
    this.groups.clear();
    this.privates.clear();
    this.inlet.refuse({ code: 'UNKNOWN_SERVICE', message: reason, retryable: false });
  }
}
