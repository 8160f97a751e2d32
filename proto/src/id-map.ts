const BITS = 5;
const PLACES = 1 << BITS;
const MASK = PLACES - 1;

/** The values of neighbouring ids. */
class Block<T extends object> {
  readonly items: (T | undefined)[] = new Array<T | undefined>(PLACES).fill(undefined);
  count = 0;
}

/**
 * Values by ids (u32) that are mostly given out one after the other, by the hundred thousand: `PLACES` of them share
 * one place of a Map, which is that much smaller then, and so mostly in the processor's cache. Ids far apart cost a
 * block each. Iterates block by block, in the order in which the blocks began.
 */
export class IdMap<T extends object> {
  private readonly blocks = new Map<number, Block<T>>();
  size = 0;
  /** The block that was used last: neighbours mostly follow each other. */
  private last: Block<T> | undefined;
  private lastIndex = -1;

  get(id: number): T | undefined {
    return this.block(id >>> BITS)?.items[id & MASK];
  }

  has(id: number): boolean {
    return this.get(id) !== undefined;
  }

  private block(index: number): Block<T> | undefined {
    if (index === this.lastIndex) return this.last;
    const block = this.blocks.get(index);
    if (block !== undefined) {
      this.last = block;
      this.lastIndex = index;
    }
    return block;
  }

  set(id: number, value: T): void {
    const index = id >>> BITS;
    let block = this.block(index);
    if (block === undefined) {
      block = new Block();
      this.blocks.set(index, block);
      this.last = block;
      this.lastIndex = index;
    }
    const place = id & MASK;
    if (block.items[place] === undefined) {
      block.count++;
      this.size++;
    }
    block.items[place] = value;
  }

  delete(id: number): boolean {
    const index = id >>> BITS;
    const block = this.block(index);
    const place = id & MASK;
    if (block === undefined || block.items[place] === undefined) return false;
    block.items[place] = undefined;
    this.size--;
    if (--block.count === 0) this.drop(index);
    return true;
  }

  private drop(index: number): void {
    this.blocks.delete(index);
    this.forgetLast();
  }

  private forgetLast(): void {
    this.last = undefined;
    this.lastIndex = -1;
  }

  clear(): void {
    this.blocks.clear();
    this.size = 0;
    this.forgetLast();
  }

  *values(): Generator<T> {
    for (const { items } of this.blocks.values()) for (const item of items) if (item !== undefined) yield item;
  }
}
