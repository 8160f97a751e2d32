interface Delay {
  readonly due: number;
  readonly sequence: number;
}

/** Messages that wait for their time: a heap by when they are due. */
export class Delays {
  private readonly heap: Delay[] = [];

  get size(): number {
    return this.heap.length;
  }

  get earliest(): number | undefined {
    return this.heap[0]?.due;
  }

  add(sequence: number, due: number): void {
    const { heap } = this;
    let index = heap.push({ due, sequence }) - 1;
    while (index > 0) {
      const parent = (index - 1) >>> 1;
      if (heap[parent]!.due <= heap[index]!.due) return;
      this.swap(parent, index);
      index = parent;
    }
  }

  /** The next one that is due, if there is one. */
  take(now: number): number | undefined {
    const { heap } = this;
    const top = heap[0];
    if (top === undefined || top.due > now) return undefined;
    const last = heap.pop()!;
    if (heap.length > 0) {
      heap[0] = last;
      this.sink();
    }
    return top.sequence;
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
