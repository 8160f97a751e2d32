import { OFFSET, readU32, Timer, type TimerOwner, TrunklineError, writeU32 } from '@trunkline/proto';
import type { Filter } from './filters/index.js';
import type { LaneDelivery, LaneView, ReturnHandler, ReturnOptions } from './handlers.js';
import type { Member } from './member.js';
import { MemberList } from './member-list.js';
import type { Peer } from './peer.js';
import type { Stream } from './stream.js';

export interface LaneOptions extends ReturnOptions {
  readonly filter: Filter | undefined;
  readonly returnHandler: string;
  /** Empty, or what sets a second lane of otherwise equal options apart within one session. */
  readonly variant: string;
}

export const BROADCAST = 'broadcast';

/** Of nearly all subscriptions: one object for all of them. */
export const PLAIN: LaneOptions = Object.freeze({
  filter: undefined,
  returnHandler: BROADCAST,
  variant: '',
  group: '',
  rate: 0,
});

/** Two subscriptions share a lane exactly if this is equal. */
export function laneKey(options: LaneOptions): string {
  return JSON.stringify([
    options.filter?.text ?? '',
    options.returnHandler,
    options.group,
    options.rate,
    options.variant,
  ]);
}

/**
 * Subscribers of one stream with the same filter and return handler options. This is the plain lane, without either:
 * it has the stream's line id, and there may be a million of them.
 */
export class Lane {
  /** One member is the usual case, and needs no list. */
  private only: Member | undefined;
  protected list: MemberList | undefined;

  constructor(
    readonly stream: Stream,
    readonly options: LaneOptions,
  ) {}

  /** The stream's own line id, or one of its own. */
  get line(): number {
    return this.stream.line;
  }

  // ---- members ----

  get members(): readonly Member[] {
    if (this.list !== undefined) return this.list.items;
    return this.only === undefined ? [] : [this.only];
  }

  get size(): number {
    if (this.list !== undefined) return this.list.items.length;
    return this.only === undefined ? 0 : 1;
  }

  find(peer: Peer): Member | undefined {
    if (this.list !== undefined) return this.list.find(peer);
    return this.only?.peer === peer ? this.only : undefined;
  }

  add(member: Member): void {
    if (this.list === undefined) {
      if (this.only === undefined) {
        this.only = member;
        member.index = 0;
        return;
      }
      this.list = new MemberList();
      this.list.add(this.only);
      this.only = undefined;
    }
    this.list.add(member);
  }

  remove(member: Member): void {
    if (this.list !== undefined) this.list.remove(member);
    else this.only = undefined;
    member.index = -1;
  }

  /** The stream is served: those that wait for their answer get it. */
  answerPending(): void {
    if (this.list === undefined) this.only?.answerPending();
    else for (const member of [...this.list.items]) member.answerPending();
  }

  /** Whether the sequences of a run that is delivered have no hole. */
  get consecutive(): boolean {
    return true;
  }

  /** Whether its return handler decides when a response is delivered. */
  get holdsBack(): boolean {
    return false;
  }

  // ---- delivery ----

  /** The whole run; the buffer carries this lane's line id. */
  deliver(buffer: Uint8Array, start: number, end: number, count: number): void {
    if (this.list === undefined) {
      this.only?.send(buffer, start, end, count);
      return;
    }
    const { items } = this.list;
    for (let index = 0; index < items.length; index++) items[index]!.send(buffer, start, end, count);
  }

  /** Something follows that must not overtake what the return handler holds back. */
  flush(): void {}

  close(): void {}
}

/**
 * A lane with a filter, a return handler of its own or both. A response is evaluated and copied once for it, however
 * many subscribers it has: its line id is another than the stream's.
 */
export class SpecialLane extends Lane implements LaneView, TimerOwner {
  /** Set where the return handler is not the plain one: a broadcast costs no call per lane. */
  private readonly delivery: LaneDelivery | undefined;
  private timer: Timer | undefined;
  private closed = false;
  /** Of the current run: where the first message that the filter let pass begins, and the last one ends. */
  firstHit = 0;
  private hitEnd = 0;
  /** Where neighbours end and the next ones begin, in turns. */
  private breaks: number[] | undefined;
  private hits = 0;
  hitBytes = 0;

  constructor(
    stream: Stream,
    private readonly ownLine: number,
    readonly key: string,
    options: LaneOptions,
    handler: ReturnHandler | undefined,
  ) {
    super(stream, options);
    if (handler === undefined) return;
    this.list = new MemberList();
    this.delivery = this.open(handler);
  }

  /** @throws TrunklineError HANDLER_FAILED: without its handler the lane would send everything to everybody */
  private open(handler: ReturnHandler): LaneDelivery {
    const { core } = this.stream;
    const delivery = core.guard('return handler', () => handler.open(this, this.options), undefined);
    if (typeof delivery?.deliver === 'function') return delivery;
    throw new TrunklineError('HANDLER_FAILED', `the return handler ${this.options.returnHandler} failed`);
  }

  override get line(): number {
    return this.ownLine;
  }

  override get consecutive(): boolean {
    return false;
  }

  override get holdsBack(): boolean {
    return this.delivery !== undefined;
  }

  override close(): void {
    this.closed = true;
    if (this.timer !== undefined) this.stream.core.context.timers.stop(this.timer);
  }

  // ---- delivery ----

  override deliver(buffer: Uint8Array, start: number, end: number, count: number): void {
    const { delivery } = this;
    if (delivery === undefined) super.deliver(buffer, start, end, count);
    else this.stream.core.guard('return handler', () => delivery.deliver(buffer, start, end, count), undefined);
  }

  /** The whole run, which carries the stream's line id. */
  deliverCopy(buffer: Uint8Array, start: number, end: number, count: number): void {
    const copy = buffer.slice(start, end);
    for (let at = 0; at < copy.length; at += readU32(copy, at)) writeU32(copy, at + OFFSET.line, this.line);
    this.deliver(copy, 0, copy.length, count);
  }

  /** Notes a message of the current run for `deliverHits` or `deliverHit`; returns true for the first of the run. */
  hit(at: number, length: number): boolean {
    const first = this.hitBytes === 0;
    if (first) this.firstHit = at;
    else if (at !== this.hitEnd) {
      this.breaks ??= [];
      this.breaks.push(this.hitEnd, at);
    }
    this.hitEnd = at + length;
    this.hitBytes += length;
    this.hits++;
    return first;
  }

  /** The one message that was noted: its copy is at `at` of `target`. Returns where that ends. */
  deliverHit(target: Uint8Array, at: number): number {
    const end = at + this.hitBytes;
    this.hitBytes = 0;
    this.hits = 0;
    writeU32(target, at + OFFSET.line, this.line);
    this.deliver(target, at, end, 1);
    return end;
  }

  /** What was noted; copied to `at` of `target`, which has room for `hitBytes`. Neighbours are copied together. */
  deliverHits(buffer: Uint8Array, target: Uint8Array, at: number): void {
    const { breaks, hits, hitBytes, line } = this;
    let from = this.firstHit;
    let to = at;
    for (let index = 0; breaks !== undefined && index < breaks.length; index += 2) {
      target.set(buffer.subarray(from, breaks[index]), to);
      to += breaks[index]! - from;
      from = breaks[index + 1]!;
    }
    target.set(buffer.subarray(from, this.hitEnd), to);
    const end = at + hitBytes;
    for (let each = at; each < end; each += readU32(target, each)) writeU32(target, each + OFFSET.line, line);
    // not kept: the next run may have one hit for each of 10,000 lanes
    this.breaks = undefined;
    this.hitBytes = 0;
    this.hits = 0;
    this.deliver(target, at, end, hits);
  }

  override flush(): void {
    const { delivery } = this;
    if (delivery?.flush) this.stream.core.guard('return handler', () => delivery.flush!(), undefined);
  }

  // ---- what a return handler may use ----

  now(): number {
    return this.stream.core.now();
  }

  wake(delay: number): void {
    if (this.closed) return;
    this.timer ??= new Timer(this);
    this.stream.core.context.timers.start(this.timer, delay);
  }

  onTimer(): void {
    const { delivery } = this;
    if (delivery?.onTimer) this.stream.core.guard('return handler', () => delivery.onTimer!(), undefined);
  }
}
