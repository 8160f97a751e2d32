import type { ErrorCode } from '@trunkline/proto';
import { RecordReader, RecordWriter } from './record-bytes.js';

/** Who is told what became of its messages. Calls are synchronous and must not throw. */
export interface Confirm {
  /**
   * Messages of the dispatcher's own: they go into the commit that is being put together, and so do records that are
   * changed now. `stored` or `refused` follows.
   */
  assigned?(): void;
  stored(number: number, count: number, sequence: number): void;
  /** Nothing of these was stored. */
  refused(number: number, count: number, reason: PublishRefusal): void;
}

export interface PublishRefusal {
  readonly code: ErrorCode;
  readonly message: string;
  readonly retryable: boolean;
}

/** Messages of one publisher with numbers one behind the other, not stored yet. */
export interface Run {
  readonly publisher: Publisher | undefined;
  readonly buffer: Uint8Array;
  readonly start: number;
  readonly end: number;
  /** Publish number of the first. */
  readonly number: number;
  readonly count: number;
  confirm: Confirm;
  /** Sequence of the first, once it has one. */
  sequence: number;
}

interface StoredRange {
  number: number;
  count: number;
  sequence: number;
}

/** Ranges of publish numbers a publisher is remembered by: the oldest are forgotten. */
export const PUBLISHER_RANGES = 1024;

/**
 * What a queue knows of one publisher, so that a message which is sent again is stored once. Of numbers above `floor`
 * it knows exactly which were stored, and where.
 */
export class Publisher {
  /** Highest number seen. */
  last = 0;
  private floor = 0;
  private ranges: StoredRange[] = [];
  private readonly pending = new Set<Run>();

  constructor(
    /** Its name among the publishers of the queue: text of the caller's own. */
    readonly id: string,
  ) {}

  /** The highest sequence it is known to have got. */
  get lastSequence(): number {
    return this.ranges.reduce((last, { sequence, count }) => Math.max(last, sequence + count - 1), 0);
  }

  get busy(): boolean {
    return this.pending.size > 0;
  }

  added(run: Run): void {
    this.pending.add(run);
    this.last = Math.max(this.last, run.number + run.count - 1);
  }

  /** What became of a number that is not above `last`; undefined: it was never stored. */
  find(number: number): Run | { readonly sequence: number } | 'forgotten' | undefined {
    for (const run of this.pending) if (number >= run.number && number < run.number + run.count) return run;
    const { ranges } = this;
    for (let index = ranges.length - 1; index >= 0; index--) {
      const range = ranges[index]!;
      if (number >= range.number + range.count) break;
      if (number >= range.number) return { sequence: range.sequence + number - range.number };
    }
    return number <= this.floor ? 'forgotten' : undefined;
  }

  /** The run got its sequence and goes into the next commit, with the record as it is then. */
  assigned({ number, count, sequence }: Run): void {
    const { ranges } = this;
    let index = ranges.length;
    while (index > 0 && ranges[index - 1]!.number > number) index--;
    const before = ranges[index - 1];
    if (before?.number !== undefined && before.number + before.count === number) {
      if (before.sequence + before.count === sequence) {
        before.count += count;
        return;
      }
    }
    ranges.splice(index, 0, { number, count, sequence });
    while (ranges.length > PUBLISHER_RANGES) {
      const dropped = ranges.shift()!;
      // never back: a number that was refused and comes again late may be the lowest
      this.floor = Math.max(this.floor, dropped.number + dropped.count - 1);
    }
  }

  /** The commit failed: nothing of the run was stored. */
  unassigned({ number, count }: Run): void {
    this.ranges = this.ranges.flatMap((range) => {
      const end = range.number + range.count;
      if (end <= number || range.number >= number + count) return [range];
      const kept: StoredRange[] = [];
      if (range.number < number) kept.push({ ...range, count: number - range.number });
      const skipped = number + count - range.number;
      if (end > number + count) {
        kept.push({ number: number + count, count: end - number - count, sequence: range.sequence + skipped });
      }
      return kept;
    });
  }

  /** Messages from there on are lost with the end of the queue: they were never stored. */
  forgetAbove(sequence: number): void {
    this.ranges = this.ranges.flatMap((range) => {
      const count = Math.min(range.count, sequence - range.sequence + 1);
      return count > 0 ? [{ ...range, count }] : [];
    });
  }

  settled(run: Run): void {
    this.pending.delete(run);
  }

  encode(): Uint8Array {
    const writer = new RecordWriter().integer(1).integer(this.floor).integer(this.ranges.length);
    let number = this.floor;
    let sequence = 0;
    for (const range of this.ranges) {
      // a number that was refused first and stored later has a higher sequence than its successors
      const back = range.sequence < sequence ? 1 : 0;
      writer.integer(range.number - number).integer(range.count * 2 + back);
      writer.integer(back ? sequence - range.sequence : range.sequence - sequence);
      number = range.number + range.count;
      sequence = range.sequence + range.count;
    }
    return writer.finish();
  }

  /** @throws TrunklineError STORE_DAMAGED */
  static decode(id: string, bytes: Uint8Array): Publisher {
    const publisher = new Publisher(id);
    const reader = new RecordReader(bytes);
    reader.integer();
    publisher.floor = reader.integer();
    publisher.last = publisher.floor;
    let number = publisher.floor;
    let sequence = 0;
    for (let left = reader.integer(); left > 0; left--) {
      const first = number + reader.integer();
      const packed = reader.integer();
      const step = reader.integer();
      const count = Math.floor(packed / 2);
      const start = packed % 2 === 1 ? sequence - step : sequence + step;
      publisher.ranges.push({ number: first, count, sequence: start });
      number = first + count;
      sequence = start + count;
    }
    publisher.last = Math.max(publisher.floor, number - 1);
    return publisher;
  }
}
