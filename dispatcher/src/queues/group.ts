import { MAX_DELAY, Timer, type TimerOwner } from '@trunkline/proto';
import { Dealer } from './dealer.js';
import { Delays } from './delays.js';
import { doneWith, encodeGroup, type GroupState } from './group-record.js';
import { Member, type MemberPort } from './member.js';
import type { MessageFilter } from './options.js';
import type { Queue } from './queue.js';
import { type Range, Ranges } from './ranges.js';
import { Undertaker } from './undertaker.js';

/** Stored ahead as perhaps delivered: this many messages more than the members' windows hold twice. */
const RESERVE_AHEAD = 1024;

/** A group's record in a commit, and what follows from its fate. */
export interface GroupCut {
  readonly record: Uint8Array;
  flushed(): void;
  failed(): void;
}

/**
 * Subscribers that share one read position of a queue. A message is always in exactly one of these states: not read
 * yet (from `next` on), held by a member, to be delivered again (`returned` → its count is stored → `ready`), waiting
 * for its time (`delays`), on its way to the dead letter queue, or done with (up to `position`, or in `acked`).
 */
export class Group implements TimerOwner {
  /** Everything up to here is done with; never goes back. */
  position: number;
  /** The next message that was not read yet. */
  next: number;
  readonly acked: Ranges;
  /** How often messages were or are about to be delivered; absent: once if they were read. */
  readonly counts: Map<number, number>;
  /** To be delivered again, with the count stored: before new messages, in order of sequence. */
  readonly ready = new Ranges();
  /** To be delivered again as soon as a member has room and the higher count is stored. */
  readonly returned = new Ranges();
  readonly delays = new Delays();
  readonly members: Member[] = [];
  /** The highest sequence that the store knows as perhaps delivered. */
  reserved: number;
  redelivered = 0;
  deadLettered = 0;
  expired = 0;
  closed = false;
  /** Whether a restart would find it: before that nobody may be told that it is there. */
  stored: boolean;
  private bumping = new Ranges();
  private bumpsUnderWay = 0;
  private readonly undertaker = new Undertaker(this);
  private lost: GroupState['lost'];
  /** Told when the record as it is now is stored. */
  private waiting: (() => void)[] = [];
  private readonly timer = new Timer(this);
  private readonly dealer: Dealer;

  constructor(
    readonly queue: Queue,
    /** Empty: a private one, which ends with its only member and is never stored. */
    readonly name: string,
    public filter: MessageFilter | undefined,
    state: Omit<GroupState, 'filter'>,
  ) {
    const { position, reserved, acked, counts, delays, lost } = state;
    this.position = position;
    this.acked = acked;
    this.counts = counts;
    this.lost = lost;
    this.stored = !this.durable;
    this.reserved = this.durable ? Math.min(reserved, queue.last) : Number.POSITIVE_INFINITY;
    this.next = position + 1;
    if (this.durable && this.reserved > position) {
      // what may have been delivered before the restart and is not done with
      for (const hole of acked.holes(position + 1, this.reserved)) this.returned.add(hole.first, hole.last);
      this.next = this.reserved + 1;
      for (const [sequence, due] of delays) {
        if (!this.returned.has(sequence)) continue;
        this.returned.remove(sequence, sequence);
        this.delays.add(sequence, due, true);
      }
      this.arm();
    }
    this.dealer = new Dealer(this);
  }

  get durable(): boolean {
    return this.name !== '' && this.queue.durable;
  }

  get outstanding(): number {
    let sum = 0;
    for (const member of this.members) sum += member.held.size;
    return sum;
  }

  /** Read, but neither held nor done with. */
  get heldBack(): number {
    const { ready, returned, delays, bumping, bumpsUnderWay, undertaker } = this;
    return ready.size + returned.size + delays.size + bumping.size + bumpsUnderWay + undertaker.size;
  }

  /** Messages that wait for a member. */
  get waitingCount(): number {
    const { next, queue } = this;
    const unread = Math.max(0, queue.last - next + 1) - queue.removed.countIn(next, queue.last);
    return unread + this.heldBack;
  }

  isDone(sequence: number): boolean {
    return sequence <= this.position || this.acked.has(sequence);
  }

  // ---- members ----

  /** The member gets nothing before its `start`. */
  join(port: MemberPort, window: number): Member {
    const member = new Member(this, port, window);
    this.members.push(member);
    return member;
  }

  /** Tells what was lost while nobody was there. */
  tellLost(): void {
    const { count, first, last } = this.lost;
    if (count === 0) return;
    this.lost = { count: 0, first: 0, last: 0 };
    for (const { port } of this.members) port.lost(count, first, last, 'retention');
    this.touch();
  }

  /** A member is gone; what it held goes to the others at once. */
  leave(member: Member): void {
    const at = this.members.indexOf(member);
    if (at < 0) return;
    this.members.splice(at, 1);
    if (this.name === '') {
      this.queue.closeGroup(this);
      return;
    }
    this.giveBack(member.held.takeAll(), 0, 'the consumer left');
    this.pump();
  }

  pump(): void {
    if (!this.closed) this.dealer.run();
  }

  /** Whether redeliveries wait for their count to be stored: new messages come after them. */
  get settling(): boolean {
    return this.returned.size > 0 || this.counting;
  }

  /** Whether counts of redeliveries are on their way to the store. */
  get counting(): boolean {
    return this.bumping.size + this.bumpsUnderWay > 0;
  }

  // ---- what becomes of messages ----

  /** Done with, for good once the group's record is stored. */
  settle(first: number, last: number): void {
    const from = Math.max(first, this.position + 1);
    if (from > last) return;
    this.acked.add(from, last);
    this.forget(from, last);
    const before = this.position;
    const head = this.acked.head();
    if (head !== undefined && head.first === before + 1) {
      this.position = head.last;
      this.acked.remove(head.first, head.last);
    }
    this.touch(false);
    if (this.position > before) this.queue.passed(before);
  }

  private forget(first: number, last: number): void {
    if (this.ready.size > 0) this.ready.remove(first, last);
    if (this.returned.size > 0) this.returned.remove(first, last);
    if (this.bumping.size > 0) this.bumping.remove(first, last);
    this.delays.remove(first, last);
    if (this.counts.size === 0) return;
    if (last - first < this.counts.size) {
      for (let sequence = first; sequence <= last; sequence++) this.counts.delete(sequence);
    } else {
      for (const sequence of this.counts.keys()) {
        if (sequence >= first && sequence <= last) this.counts.delete(sequence);
      }
    }
  }

  /** Nacked, timed out, or its member is gone: one rule for all, delivered again before new messages. */
  giveBack(parts: readonly Range[], delay: number, reason: string): void {
    const most = this.queue.options.maxDeliveries;
    for (const { first, last } of parts) {
      if (most === 0 && delay === 0) {
        for (const open of this.acked.holes(Math.max(first, this.position + 1), last)) {
          this.returned.add(open.first, open.last);
        }
        continue;
      }
      for (let sequence = first; sequence <= last; sequence++) {
        if (this.isDone(sequence)) continue;
        const count = this.countOf(sequence);
        if (most > 0 && count >= most) this.undertaker.add(sequence, count, reason);
        else if (delay > 0) this.delay(sequence, this.queue.time() + delay, true);
        else this.returned.add(sequence, sequence);
      }
    }
  }

  /** How often a message that was read was delivered. */
  countOf(sequence: number): number {
    return this.counts.get(sequence) ?? 1;
  }

  /** `store`: the message itself does not say so, and a restart has to know. */
  delay(sequence: number, due: number, store: boolean): void {
    this.delays.add(sequence, due, store);
    if (store) this.touch(false);
    this.arm();
  }

  /** Prepares up to `most` returned messages: they are delivered when their new count is stored. */
  bump(most: number): void {
    const head = this.returned.head(most);
    if (head === undefined) return;
    this.returned.remove(head.first, head.last);
    const bound = this.queue.options.maxDeliveries;
    const target = this.durable ? this.bumping : this.ready;
    for (let sequence = head.first; sequence <= head.last; sequence++) {
      const count = this.countOf(sequence);
      if (bound > 0 && count >= bound) {
        this.undertaker.add(sequence, count, 'delivered too often');
      } else {
        this.counts.set(sequence, count + 1);
        target.add(sequence, sequence);
      }
    }
    this.touch();
  }

  /** Too old to be delivered, and delivered `count` times before. */
  expire(sequence: number, count: number): void {
    this.expired++;
    if (this.queue.options.deadLetter === 0) this.settle(sequence, sequence);
    else this.undertaker.add(sequence, count, 'expired');
  }

  /** It is in the dead letter queue, or dropped where there is none. */
  buried(sequence: number): void {
    this.deadLettered++;
    this.settle(sequence, sequence);
    this.pump();
  }

  /** Operator: everything that is out or waits for its time is delivered again now. Returns how many messages. */
  redeliver(): number {
    let count = 0;
    for (const member of this.members) {
      const parts = member.held.takeAll();
      for (const { first, last } of parts) count += last - first + 1;
      this.giveBack(parts, 0, 'redelivered by an operator');
    }
    for (let next = this.delays.take(Number.POSITIVE_INFINITY); next !== undefined; ) {
      if (!this.isDone(next)) {
        this.returned.add(next, next);
        count++;
      }
      next = this.delays.take(Number.POSITIVE_INFINITY);
    }
    this.touch(false);
    this.pump();
    return count;
  }

  /** The queue dropped everything up to `to`, or cannot read it any more. */
  moveUp(from: number, to: number, reason: string): void {
    const start = Math.max(from, this.position + 1);
    if (start > to) return;
    const unread = this.heldBack > 0 ? start : Math.max(start, this.next);
    let lost = 0;
    for (const { first, last } of this.acked.holes(start, to)) lost += last - first + 1;
    for (const member of this.members) for (const part of member.held.all()) lost -= overlap(part, start, to);
    this.next = Math.max(this.next, to + 1);
    this.settle(start, to);
    this.touch();
    if (lost <= 0) return;
    for (const { port } of this.members) port.lost(lost, unread, to, reason);
    if (this.members.length > 0) return;
    const { lost: before } = this;
    this.lost = { count: before.count + lost, first: before.first || unread, last: to };
  }

  // ---- time ----

  /** Makes sure that the timer comes no later than what is due next. Deadlines of new deliveries only grow. */
  arm(deadline = this.delays.earliest ?? Number.POSITIVE_INFINITY): void {
    const { timer, queue } = this;
    if (this.closed || deadline === Number.POSITIVE_INFINITY) return;
    const wait = Math.min(MAX_DELAY, Math.max(0, deadline - queue.time()));
    if (!timer.active || timer.deadline > queue.clock.now() + wait) queue.timers.start(timer, wait);
  }

  onTimer(): void {
    const now = this.queue.time();
    let next = Number.POSITIVE_INFINITY;
    for (const member of this.members) {
      this.giveBack(member.held.takeDue(now), 0, 'not acknowledged in time');
      next = Math.min(next, member.held.earliestDeadline);
    }
    for (let due = this.delays.take(now); due !== undefined; due = this.delays.take(now)) {
      if (!this.isDone(due)) this.returned.add(due, due);
    }
    this.arm(Math.min(next, this.delays.earliest ?? Number.POSITIVE_INFINITY));
    this.pump();
  }

  // ---- the record ----

  /** Has the record stored: with the next commit, or, if not `urgent`, with one that takes place anyway. */
  touch(urgent = true): void {
    if (this.durable && !this.closed) this.queue.groupChanged(this, urgent);
  }

  /** Calls `done` once everything that happened to the group until now is stored. */
  whenStored(done: () => void): void {
    if (!this.durable || this.closed) {
      done();
      return;
    }
    this.waiting.push(done);
    this.touch();
  }

  cut(): GroupCut {
    const { bumping, waiting } = this;
    this.bumping = new Ranges();
    this.waiting = [];
    this.bumpsUnderWay += bumping.size;
    const reserved = this.reservation();
    const { counts, lost, undertaker } = this;
    const delays = this.delays.stored;
    const done = doneWith(this.position, this.acked, undertaker.committing);
    const record = encodeGroup({ filter: this.filter?.text ?? '', ...done, reserved, counts, delays, lost });
    return {
      record,
      flushed: () => {
        this.stored = true;
        this.bumpsUnderWay -= bumping.size;
        this.reserved = Math.max(this.reserved, reserved);
        this.addOpen(bumping, this.ready);
        for (const done of waiting) done();
        this.pump();
      },
      failed: () => {
        this.bumpsUnderWay -= bumping.size;
        this.addOpen(bumping, this.bumping);
        this.waiting = [...waiting, ...this.waiting];
        if (this.closed) for (const done of this.waiting.splice(0)) done();
      },
    };
  }

  /** What is done with meanwhile is left out. */
  private addOpen(from: Ranges, to: Ranges): void {
    for (const { first, last } of from) {
      for (const open of this.acked.holes(Math.max(first, this.position + 1), last)) to.add(open.first, open.last);
    }
  }

  /** Up to where messages may be delivered once this is stored. */
  private reservation(): number {
    const { members, reserved, next, queue } = this;
    if (members.length === 0) return Math.max(reserved, this.position);
    let windows = 0;
    for (const { window } of members) windows += window;
    return Math.max(reserved, Math.min(queue.assigned, next - 1 + 2 * windows + RESERVE_AHEAD));
  }

  stopTimers(): void {
    this.queue.timers.stop(this.timer);
    this.dealer.close();
    this.undertaker.close();
  }

  /** Nothing of it is left; members are told by the caller. */
  close(): void {
    this.closed = true;
    this.stopTimers();
    for (const done of this.waiting.splice(0)) done();
  }
}

function overlap({ first, last }: Range, from: number, to: number): number {
  return Math.max(0, Math.min(last, to) - Math.max(first, from) + 1);
}
