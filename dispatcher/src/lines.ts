const SLOT_BITS = 24;
const SLOT_MASK = 2 ** SLOT_BITS - 1;

/**
 * Line ids and what they name. An id is a slot and a count of how often the slot was used before, so that a late
 * message for a line that is gone does not meet its successor.
 */
export class LineTable<T> {
  private readonly items: (T | undefined)[] = [undefined];
  private readonly uses: number[] = [0];
  private readonly free: number[] = [];
  size = 0;

  /** A new id, never 0. At most 2^24-1 lines live at one time. */
  allocate(item: T): number {
    const slot = this.free.length > 64 || this.items.length > SLOT_MASK ? this.free.shift()! : this.items.length;
    this.items[slot] = item;
    this.uses[slot] ??= 0;
    this.size++;
    return ((this.uses[slot]! << SLOT_BITS) | slot) >>> 0;
  }

  /** An id that names nothing and is not used again soon. */
  reserve(): number {
    const line = this.allocate(undefined as T);
    const slot = line & SLOT_MASK;
    this.uses[slot] = (this.uses[slot]! + 1) & 0xff;
    this.free.push(slot);
    this.size--;
    return line;
  }

  get full(): boolean {
    return this.size >= SLOT_MASK - 64;
  }

  get(line: number): T | undefined {
    const slot = line & SLOT_MASK;
    return this.uses[slot] === line >>> SLOT_BITS ? this.items[slot] : undefined;
  }

  release(line: number): void {
    const slot = line & SLOT_MASK;
    if (this.get(line) === undefined) return;
    this.items[slot] = undefined;
    this.uses[slot] = (this.uses[slot]! + 1) & 0xff;
    this.free.push(slot);
    this.size--;
  }
}
