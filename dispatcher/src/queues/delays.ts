interface Delay {
  readonly due: number;
  readonly sequence: number;
}

/** So many delays that consumers asked for are stored with a group; messages beyond it come at once after a restart. */
export const MAX_STORED_DELAYS = 1024;

/** Messages that wait for their time: a heap by when they are due. */
export class Delays {
  private heap: Delay[] = [];
  /** What waits, and until when; an entry of the heap that says otherwise is out of date. */
  private readonly due = new Map<number, number>();
  /** Those that the message itself does not tell: stored with the group. */
  readonly stored = new Map<number, number>();

  get size(): number {
    return this.due.size;
  }

  /** Bounds what is out of date in the heap. */
  private tidy(): void {
    if (this.heap.length <= 2 * this.due.size + 64) return;
    const waiting = [...this.due];
    this.heap = [];
    for (const [sequence, due] of waiting) this.push({ due, sequence });
  }

  get earliest(): number | undefined {
    this.skip();
    return this.heap[0]?.due;
  }

  /** `store`: a restart has to know of it. */
  add(sequence: number, due: number, store: boolean): void {
    this.due.set(sequence, due);
    if (store && this.stored.size < MAX_STORED_DELAYS) this.stored.set(sequence, due);
    this.push({ due, sequence });
  }

  private push(delay: Delay): void {
    const { heap } = this;
    let index = heap.push(delay) - 1;
    while (index > 0) {
      const parent = (index - 1) >>> 1;
      if (heap[parent]!.due <= heap[index]!.due) return;
      this.swap(parent, index);
      index = parent;
    }
  }

  /** They do not wait any more. */
  remove(first: number, last: number): void {
    if (this.due.size === 0) return;
    if (last - first < this.due.size) {
      for (let sequence = first; sequence <= last; sequence++) this.delete(sequence);
    } else {
      for (const sequence of this.due.keys()) if (sequence >= first && sequence <= last) this.delete(sequence);
    }
    this.tidy();
  }

  private delete(sequence: number): void {
    this.due.delete(sequence);
    this.stored.delete(sequence);
  }

  /** The next one that is due, if there is one. */
  take(now: number): number | undefined {
    this.skip();
    const top = this.heap[0];
    if (top === undefined || top.due > now) return undefined;
    this.pop();
    this.delete(top.sequence);
    return top.sequence;
  }

  /** Takes away what is out of date at the top. */
  private skip(): void {
    for (let top = this.heap[0]; top !== undefined && this.due.get(top.sequence) !== top.due; top = this.heap[0]) {
      this.pop();
    }
  }

  private pop(): void {
    const { heap } = this;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    heap[0] = last;
    this.sink();
  }

  private sink(): void {
    const { heap } = this;
    for (let index = 0; ; ) {
      let least = index;
      for (const child of [2 * index + 1, 2 * index + 2]) {
        if (child < heap.length && heap[child]!.due < heap[least]!.due) least = child;
      }
      if (least === index) return;
      this.swap(least, index);
      index = least;
    }
  }

  private swap(one: number, other: number): void {
    const { heap } = this;
    const kept = heap[one]!;
    heap[one] = heap[other]!;
    heap[other] = kept;
  }
}
