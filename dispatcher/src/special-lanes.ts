import { readU32 } from '@trunkline/proto';
import type { Core } from './core.js';
import { FilterIndex } from './filters/index.js';
import { BROADCAST, type LaneOptions, laneKey, SpecialLane } from './lane.js';
import { MessageInput } from './message-input.js';
import type { Stream } from './stream.js';

/**
 * Copies for many lanes stand back to back in buffers of this size, as large as the largest batch: a session gets them
 * as one range.
 */
const CHUNK_BYTES = 256 * 1024;

/** The message that is being matched: nothing else runs meanwhile. */
const input = new MessageInput();

/** The lanes of a stream that are not its plain one. */
export class SpecialLanes {
  private readonly byKey = new Map<string, SpecialLane>();
  private filtered: FilterIndex<SpecialLane> | undefined;
  private readonly unfiltered = new Set<SpecialLane>();
  /** Of the current run: the lanes with messages in it, and the bytes of all of them. */
  private readonly touched: SpecialLane[] = [];
  private hitBytes = 0;
  /** Of the current run: no lane has two messages, and no message two lanes. */
  private single = true;
  private at = 0;
  private length = 0;
  private lastHit = -1;
  private readonly visit = (lane: SpecialLane): void => {
    const { at, length } = this;
    this.hitBytes += length;
    if (at === this.lastHit) this.single = false;
    this.lastHit = at;
    if (lane.hit(at, length)) this.touched.push(lane);
    else this.single = false;
  };

  constructor(private readonly stream: Stream) {}

  get size(): number {
    return this.byKey.size;
  }

  all(): IterableIterator<SpecialLane> {
    return this.byKey.values();
  }

  find(options: LaneOptions): SpecialLane | undefined {
    return this.byKey.get(laneKey(options));
  }

  /**
   * The lane for these options, made if need be. Takes over the filter; a second one for the same lane is given back.
   * @throws TrunklineError HANDLER_FAILED: the return handler does not open it; the filter is given back
   */
  get(options: LaneOptions): SpecialLane {
    const key = laneKey(options);
    const existing = this.byKey.get(key);
    if (existing !== undefined) {
      if (options.filter) this.stream.core.filters.release(options.filter);
      return existing;
    }
    const lane = this.open(key, options);
    this.byKey.set(key, lane);
    if (options.filter === undefined) {
      this.unfiltered.add(lane);
    } else {
      this.filtered ??= new FilterIndex();
      this.filtered.add(options.filter, lane);
    }
    return lane;
  }

  private open(key: string, options: LaneOptions): SpecialLane {
    const { core, service } = this.stream;
    const { filter, returnHandler } = options;
    const handler = returnHandler === BROADCAST ? undefined : service.returnHandler(returnHandler);
    const line = core.lines.allocate(this.stream);
    try {
      return new SpecialLane(this.stream, line, key, options, handler);
    } catch (error) {
      core.lines.release(line);
      if (filter) core.filters.release(filter);
      throw error;
    }
  }

  /** A closed lane. */
  remove(lane: SpecialLane): void {
    const { core } = this.stream;
    const { filter } = lane.options;
    this.byKey.delete(lane.key);
    core.lines.release(lane.line);
    if (filter === undefined) {
      this.unfiltered.delete(lane);
      return;
    }
    this.filtered!.remove(filter, lane);
    if (this.filtered!.size === 0) this.filtered = undefined;
    core.filters.release(filter);
  }

  /** A run of responses with the stream's line id. */
  deliver(buffer: Uint8Array, start: number, end: number, count: number): void {
    for (const lane of this.unfiltered) lane.deliverCopy(buffer, start, end, count);
    if (this.filtered !== undefined) this.filter(this.filtered, buffer, start, end);
  }

  private filter(index: FilterIndex<SpecialLane>, buffer: Uint8Array, start: number, end: number): void {
    this.single = true;
    this.lastHit = -1;
    for (let at = start; at < end; at += this.length) {
      this.at = at;
      this.length = readU32(buffer, at);
      const readable = input.begin(buffer, at);
      if (readable) index.match(input, this.visit);
      else this.stream.core.counters.filterErrors++;
    }
    input.finish();
    const touched = this.touched.splice(0);
    const bytes = this.hitBytes;
    this.hitBytes = 0;
    if (this.single) deliverEach(this.stream.core, touched, buffer, bytes);
    else deliverAll(this.stream.core, touched, buffer, bytes);
  }
}

/** One message for each lane, in the order of the run: neighbours are copied together. */
function deliverEach(core: Core, touched: readonly SpecialLane[], buffer: Uint8Array, bytes: number): void {
  let left = bytes;
  let target: Uint8Array = NOTHING;
  let at = 0;
  for (let index = 0; index < touched.length; ) {
    const start = touched[index]!.firstHit;
    let end = start + touched[index]!.hitBytes;
    let next = index + 1;
    for (; next < touched.length; next++) {
      const { firstHit, hitBytes } = touched[next]!;
      if (firstHit !== end || end + hitBytes - start > CHUNK_BYTES) break;
      end += hitBytes;
    }
    if (at + end - start > target.length) {
      target = core.allocate(Math.max(end - start, Math.min(left, CHUNK_BYTES)));
      at = 0;
    }
    target.set(buffer.subarray(start, end), at);
    left -= end - start;
    for (; index < next; index++) at = touched[index]!.deliverHit(target, at);
  }
}

function deliverAll(core: Core, touched: readonly SpecialLane[], buffer: Uint8Array, bytes: number): void {
  let left = bytes;
  let target: Uint8Array = NOTHING;
  let at = 0;
  for (const lane of touched) {
    const { hitBytes } = lane;
    if (at + hitBytes > target.length) {
      target = core.allocate(Math.max(hitBytes, Math.min(left, CHUNK_BYTES)));
      at = 0;
    }
    lane.deliverHits(buffer, target, at);
    at += hitBytes;
    left -= hitBytes;
  }
}

const NOTHING = new Uint8Array(0);
