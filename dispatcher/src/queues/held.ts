import type { Range } from './ranges.js';

/** Messages one behind the other that a member holds, with one deadline. */
interface Run {
  first: number;
  last: number;
  deadline: number;
}

/** What a member holds unacknowledged, by sequence. */
export class Held {
  private runs: Run[] = [];
  /** How many messages. */
  size = 0;

  /** Index of the first run that ends at or above `sequence`. */
  private find(sequence: number): number {
    const { runs } = this;
    let high = runs.length;
    if (high === 0 || runs[high - 1]!.last < sequence) return high;
    let low = 0;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (runs[middle]!.last < sequence) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  add(first: number, last: number, deadline: number): void {
    this.size += last - first + 1;
    const index = this.find(first);
    const before = this.runs[index - 1];
    if (before !== undefined && before.last === first - 1 && before.deadline === deadline) before.last = last;
    else if (index === this.runs.length) this.runs.push({ first, last, deadline });
    else this.runs.splice(index, 0, { first, last, deadline });
  }

  /** Takes what is there of a range; returns its parts in order. */
  take(first: number, last: number): Range[] {
    const taken: Range[] = [];
    const { runs } = this;
    const index = this.find(first);
    while (index < runs.length && runs[index]!.first <= last) {
      const run = runs[index]!;
      const part = { first: Math.max(first, run.first), last: Math.min(last, run.last) };
      taken.push(part);
      this.size -= part.last - part.first + 1;
      if (part.first === run.first && part.last === run.last) {
        if (index === 0) runs.shift();
        else runs.splice(index, 1);
      } else if (part.first === run.first) {
        run.first = part.last + 1;
        break;
      } else {
        if (part.last < run.last) runs.splice(index + 1, 0, { ...run, first: part.last + 1 });
        run.last = part.first - 1;
        return part.last === last ? taken : [...taken, ...this.take(part.last + 1, last)];
      }
    }
    return taken;
  }

  /** Takes everything whose deadline has come. */
  takeDue(now: number): Range[] {
    const due = this.runs.filter((run) => run.deadline <= now);
    return due.flatMap(({ first, last }) => this.take(first, last));
  }

  get earliestDeadline(): number {
    let earliest = Number.POSITIVE_INFINITY;
    for (const { deadline } of this.runs) earliest = Math.min(earliest, deadline);
    return earliest;
  }

  all(): readonly Range[] {
    return this.runs;
  }

  takeAll(): Range[] {
    const all = this.runs.map(({ first, last }) => ({ first, last }));
    this.runs = [];
    this.size = 0;
    return all;
  }
}
