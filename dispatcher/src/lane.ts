import { OFFSET, readU32, Timer, type TimerOwner, TrunklineError, writeU32 } from '@trunkline/proto';
import type { Filter } from './filters/index.js';
import type { LaneDelivery, LaneView, ReturnHandler, ReturnOptions } from './handlers.js';
import type { Member } from './member.js';
import type { Peer } from './peer.js';
import type { Stream } from './stream.js';

/** From this many members on they are found by a map instead of by looking at each. */
const INDEX_FROM = 16;

export interface LaneOptions extends ReturnOptions {
  readonly filter: Filter | undefined;
  readonly returnHandler: string;
  /** Empty, or what sets a second lane of otherwise equal options apart within one session. */
  readonly variant: string;
}

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
 * Subscribers of one stream with the same filter and return handler options. A response is evaluated and, where its
 * line id has to be another than the stream's, copied once per lane, however many subscribers it has.
 */
export class Lane implements LaneView, TimerOwner {
  readonly members: Member[] = [];
  /** Set where the return handler is not the plain one: a broadcast costs no call per lane. */
  private readonly delivery: LaneDelivery | undefined;
  private index: Map<Peer, Member> | undefined;
  private timer: Timer | undefined;
  private closed = false;
  /** Offsets of the messages of the current run that the filter let pass. */
  private readonly hits: number[] = [];
  private hitBytes = 0;

  constructor(
    readonly stream: Stream,
    /** The stream's own line id, or one of its own. */
    readonly line: number,
    readonly key: string,
    readonly options: LaneOptions,
    handler: ReturnHandler | undefined,
  ) {
    this.delivery = handler && this.open(handler);
  }

  /** @throws TrunklineError HANDLER_FAILED: without its handler the lane would send everything to everybody */
  private open(handler: ReturnHandler): LaneDelivery {
    const { core } = this.stream;
    const delivery = core.guard('return handler', () => handler.open(this, this.options), undefined);
    if (typeof delivery?.deliver === 'function') return delivery;
    throw new TrunklineError('HANDLER_FAILED', `the return handler ${this.options.returnHandler} failed`);
  }

  // ---- members ----

  find(peer: Peer): Member | undefined {
    if (this.index !== undefined) return this.index.get(peer);
    return this.members.find((member) => member.peer === peer);
  }

  add(member: Member): void {
    member.index = this.members.length;
    this.members.push(member);
    if (this.index !== undefined) this.index.set(member.peer, member);
    else if (this.members.length >= INDEX_FROM) {
      this.index = new Map(this.members.map((each) => [each.peer, each]));
    }
  }

  remove(member: Member): void {
    const last = this.members.pop()!;
    if (last !== member) {
      last.index = member.index;
      this.members[member.index] = last;
    }
    member.index = -1;
    this.index?.delete(member.peer);
  }

  /** Whether its return handler decides when a response is delivered. */
  get holdsBack(): boolean {
    return this.delivery !== undefined;
  }

  close(): void {
    this.closed = true;
    if (this.timer !== undefined) this.stream.core.context.timers.stop(this.timer);
  }

  // ---- delivery ----

  /** The whole run; the buffer carries this lane's line id. */
  deliver(buffer: Uint8Array, start: number, end: number, count: number): void {
    const { delivery, members } = this;
    if (delivery !== undefined) {
      this.stream.core.guard('return handler', () => delivery.deliver(buffer, start, end, count), undefined);
      return;
    }
    for (let index = 0; index < members.length; index++) members[index]!.send(buffer, start, end, count);
  }

  /** The whole run of a lane with a line id of its own. */
  deliverCopy(buffer: Uint8Array, start: number, end: number, count: number): void {
    const copy = buffer.slice(start, end);
    for (let at = 0; at < copy.length; at += readU32(copy, at)) writeU32(copy, at + OFFSET.line, this.line);
    this.deliver(copy, 0, copy.length, count);
  }

  /** Notes a message of the current run for `deliverHits`; returns true for the first of the run. */
  hit(buffer: Uint8Array, at: number): boolean {
    this.hitBytes += readU32(buffer, at);
    return this.hits.push(at) === 1;
  }

  deliverHits(buffer: Uint8Array): void {
    const copy = new Uint8Array(this.hitBytes);
    const count = this.hits.length;
    let to = 0;
    for (const at of this.hits) {
      copy.set(buffer.subarray(at, at + readU32(buffer, at)), to);
      writeU32(copy, to + OFFSET.line, this.line);
      to += readU32(copy, to);
    }
    this.hits.length = 0;
    this.hitBytes = 0;
    this.deliver(copy, 0, copy.length, count);
  }

  /** Something follows that must not overtake what the return handler holds back. */
  flush(): void {
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
