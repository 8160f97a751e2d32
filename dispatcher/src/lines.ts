const SLOT_BITS = 24;
const SLOT_MASK = 2 ** SLOT_BITS - 1;
/** Slots that are free before one of them is used again. */
const LEAST_FREE = 64;
/** Used places at the front of the free slots before they are cut off. */
const CUT_FROM = 1024;

/**
 * Line ids and what they name. An id is a slot and a count of how often the slot was used before, so that a late
 * message for a line that is gone does not meet its successor.
 */
export class LineTable<T> {
  private readonly items: (T | undefined)[] = [undefined];
  /** Grown by doubling: a byte for each slot. */
  private uses = new Uint8Array(1024);
  /** First in, first out; those before `firstFree` are taken again. */
  private free: number[] = [];
  private firstFree = 0;
  size = 0;

  /** A new id, never 0. At most 2^24-1 lines live at one time. */
  allocate(item: T): number {
    const reuse = this.free.length - this.firstFree > LEAST_FREE || this.items.length > SLOT_MASK;
    const slot = reuse ? this.takeFree() : this.items.length;
    this.items[slot] = item;
    if (slot >= this.uses.length) this.grow();
    this.size++;
    return ((this.uses[slot]! << SLOT_BITS) | slot) >>> 0;
  }

  private grow(): void {
    const uses = new Uint8Array(this.uses.length * 2);
    uses.set(this.uses);
    this.uses = uses;
  }

  /** Not `shift`, which moves all that are left. */
  private takeFree(): number {
    const slot = this.free[this.firstFree++]!;
    if (this.firstFree >= CUT_FROM && this.firstFree * 2 >= this.free.length) {
      this.free = this.free.slice(this.firstFree);
      this.firstFree = 0;
    }
    return slot;
  }

  /** An id that names nothing and is not used again soon. */
  reserve(): number {
    const line = this.allocate(undefined as T);
    this.giveBack(line & SLOT_MASK);
    return line;
  }

  get full(): boolean {
    return this.size >= SLOT_MASK - LEAST_FREE;
  }

  get(line: number): T | undefined {
    const slot = line & SLOT_MASK;
    return this.uses[slot] === line >>> SLOT_BITS ? this.items[slot] : undefined;
  }

  release(line: number): void {
    if (this.get(line) !== undefined) this.giveBack(line & SLOT_MASK);
  }

  private giveBack(slot: number): void {
    this.items[slot] = undefined;
    this.uses[slot] = this.uses[slot]! + 1;
    this.free.push(slot);
    this.size--;
  }
}
