/** First in, first out, without moving what waits at every shift. */
export class Fifo<Item> {
  private items: Item[] = [];
  private head = 0;

  get size(): number {
    return this.items.length - this.head;
  }

  push(item: Item): void {
    this.items.push(item);
  }

  shift(): Item | undefined {
    if (this.head === this.items.length) return undefined;
    const item = this.items[this.head]!;
    this.head++;
    // the taken half is dropped now and then, so that each item is moved once on average
    if (this.head * 2 > this.items.length) {
      this.items = this.items.slice(this.head);
      this.head = 0;
    }
    return item;
  }

  /** Everything that waited, in order; nothing is left. */
  take(): Item[] {
    const items = this.items.slice(this.head);
    this.items = [];
    this.head = 0;
    return items;
  }

  values(): readonly Item[] {
    return this.items.slice(this.head);
  }
}
