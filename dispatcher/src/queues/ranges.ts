/** A first and a last sequence, both of it. */
export interface Range {
  readonly first: number;
  readonly last: number;
}

/** A set of integers, kept as sorted ranges that neither overlap nor touch. */
export class Ranges {
  private readonly starts: number[] = [];
  private readonly ends: number[] = [];
  /** How many integers there are. */
  size = 0;

  /** How many ranges. */
  get length(): number {
    return this.starts.length;
  }

  get last(): number | undefined {
    return this.ends[this.ends.length - 1];
  }

  /** Index of the first range that ends at or above `value`. */
  private find(value: number): number {
    const { ends } = this;
    let high = ends.length;
    if (high === 0 || ends[high - 1]! < value) return high;
    let low = 0;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (ends[middle]! < value) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  has(value: number): boolean {
    const index = this.find(value);
    return index < this.starts.length && this.starts[index]! <= value;
  }

  add(first: number, last: number): void {
    const { starts, ends } = this;
    const from = this.find(first - 1);
    let to = from;
    let start = first;
    let end = last;
    while (to < starts.length && starts[to]! <= last + 1) {
      start = Math.min(start, starts[to]!);
      end = Math.max(end, ends[to]!);
      this.size -= ends[to]! - starts[to]! + 1;
      to++;
    }
    this.size += end - start + 1;
    if (to === from + 1) {
      starts[from] = start;
      ends[from] = end;
    } else if (from === starts.length) {
      starts.push(start);
      ends.push(end);
    } else {
      starts.splice(from, to - from, start);
      ends.splice(from, to - from, end);
    }
  }

  /** Takes away what is there of a range. */
  remove(first: number, last: number): void {
    const { starts, ends } = this;
    const from = this.find(first);
    let to = from;
    let left: number | undefined;
    let right: number | undefined;
    for (; to < starts.length && starts[to]! <= last; to++) {
      if (starts[to]! < first) left = starts[to]!;
      if (ends[to]! > last) right = ends[to]!;
      this.size -= Math.min(last, ends[to]!) - Math.max(first, starts[to]!) + 1;
    }
    if (to === from) return;
    const keptStarts: number[] = [];
    const keptEnds: number[] = [];
    if (left !== undefined) {
      keptStarts.push(left);
      keptEnds.push(first - 1);
    }
    if (right !== undefined) {
      keptStarts.push(last + 1);
      keptEnds.push(right);
    }
    starts.splice(from, to - from, ...keptStarts);
    ends.splice(from, to - from, ...keptEnds);
  }

  /** The lowest range, at most `most` integers of it. */
  head(most = Number.MAX_SAFE_INTEGER): Range | undefined {
    const first = this.starts[0];
    return first === undefined ? undefined : { first, last: Math.min(this.ends[0]!, first + most - 1) };
  }

  /** How many integers of a range are in the set. */
  countIn(first: number, last: number): number {
    let count = 0;
    for (let index = this.find(first); index < this.starts.length && this.starts[index]! <= last; index++) {
      count += Math.min(last, this.ends[index]!) - Math.max(first, this.starts[index]!) + 1;
    }
    return count;
  }

  /** The parts of a range that are not in the set. */
  *holes(first: number, last: number): Generator<Range> {
    let next = first;
    for (let index = this.find(first); index < this.starts.length && this.starts[index]! <= last; index++) {
      if (this.starts[index]! > next) yield { first: next, last: this.starts[index]! - 1 };
      next = this.ends[index]! + 1;
    }
    if (next <= last) yield { first: next, last };
  }

  *[Symbol.iterator](): Generator<Range> {
    for (let index = 0; index < this.starts.length; index++) {
      yield { first: this.starts[index]!, last: this.ends[index]! };
    }
  }

  addAll(other: Ranges): void {
    for (const { first, last } of other) this.add(first, last);
  }
}
