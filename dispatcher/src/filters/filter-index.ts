import type { Filter, FilterInput, Predicate } from './filter.js';

/** In the place of an item that was removed while a match was going through its neighbours. */
const GONE = Symbol('gone');

/** The items of one filter, which is evaluated once for all of them. */
class Entry<T> {
  readonly items: (T | typeof GONE)[] = [];
  readonly positions = new Map<T, number>();
  /** Its place in the bucket. */
  place = 0;
  /** Of the filter: a lookup less. */
  readonly residual: Predicate | undefined;
  constructor(
    readonly filter: Filter,
    readonly bucket: Bucket<T>,
  ) {
    this.residual = filter.residual;
  }
}

/** Entries whose filters have the same indexed value, or none. */
class Bucket<T> {
  readonly entries: Entry<T>[] = [];
  /**
   * The item, where there is one entry without a residual and one item of it: nearly always, where there are many
   * buckets. Each further object to look at is memory that is not in the processor's cache then.
   */
  only: T | undefined;

  /** To be called when something in it changed. */
  refresh(): void {
    const [entry] = this.entries;
    const alone = this.entries.length === 1 && entry!.residual === undefined && entry!.items.length === 1;
    const item = alone ? entry!.items[0]! : GONE;
    this.only = item === GONE ? undefined : (item as T);
  }
}

/**
 * A set of items by their filters that finds the ones a message matches: filters with an indexed equality are looked up
 * by the message's tag and key, so they cost nothing unless they hit. The result is exactly that of evaluating each alone.
 * An item may be there once for each filter. `visit` may add (seen from the next message on) and remove (not visited any more).
 */
export class FilterIndex<T> {
  readonly #byField = { tag: new Map<string, Bucket<T>>(), key: new Map<string, Bucket<T>>() };
  readonly #others = new Bucket<T>();
  readonly #entries = new Map<Filter, Entry<T>>();
  #size = 0;
  #bodyUsers = 0;
  #matching = 0;
  readonly #untidy = new Set<Entry<T>>();

  /** Items, each counted once for every filter it was added with. */
  get size(): number {
    return this.#size;
  }

  /** Whether some filter looks at the body. */
  get usesBody(): boolean {
    return this.#bodyUsers > 0;
  }

  /** Adding the same item with the same filter again changes nothing. */
  add(filter: Filter, item: T): void {
    const entry = this.#entries.get(filter) ?? this.#open(filter);
    if (entry.positions.has(item)) return;
    entry.positions.set(item, entry.items.push(item) - 1);
    entry.bucket.refresh();
    this.#size++;
  }

  /** What is not there is ignored. */
  remove(filter: Filter, item: T): void {
    const entry = this.#entries.get(filter);
    const position = entry?.positions.get(item);
    if (entry === undefined || position === undefined) return;
    entry.positions.delete(item);
    this.#size--;
    if (this.#matching > 0) {
      entry.items[position] = GONE;
      entry.bucket.refresh();
      this.#untidy.add(entry);
      return;
    }
    const last = entry.items.pop() as T;
    if (position < entry.items.length) {
      entry.items[position] = last;
      entry.positions.set(last, position);
    }
    if (entry.items.length === 0) this.#close(entry);
    else entry.bucket.refresh();
  }

  /** Calls `visit` for every item whose filter matches. Allocates nothing. */
  match(input: FilterInput, visit: (item: T) => void): void {
    this.#matching++;
    try {
      visitBucket(this.#others, input, visit);
      const { key, tag } = this.#byField;
      // what no filter asks for is not read
      const byKey = key.size > 0 ? key.get(input.key) : undefined;
      if (byKey !== undefined) visitBucket(byKey, input, visit);
      const byTag = tag.size > 0 ? tag.get(input.tag) : undefined;
      if (byTag !== undefined) visitBucket(byTag, input, visit);
    } finally {
      if (--this.#matching === 0 && this.#untidy.size > 0) this.#tidy();
    }
  }

  #open(filter: Filter): Entry<T> {
    const bucket = this.#bucketFor(filter);
    const entry = new Entry(filter, bucket);
    entry.place = bucket.entries.push(entry) - 1;
    this.#entries.set(filter, entry);
    if (filter.usesBody) this.#bodyUsers++;
    return entry;
  }

  #close({ filter, bucket, place }: Entry<T>): void {
    this.#entries.delete(filter);
    if (filter.usesBody) this.#bodyUsers--;
    const { entries } = bucket;
    const last = entries.pop()!;
    if (place < entries.length) {
      entries[place] = last;
      last.place = place;
    }
    bucket.refresh();
    if (entries.length === 0 && filter.index !== undefined)
      this.#byField[filter.index.field].delete(filter.index.value);
  }

  /** Takes the gaps out that were left by removals during a match. */
  #tidy(): void {
    for (const entry of this.#untidy) {
      let count = 0;
      for (const item of entry.items) {
        if (item === GONE) continue;
        entry.items[count] = item;
        entry.positions.set(item, count++);
      }
      entry.items.length = count;
      if (count === 0) this.#close(entry);
      else entry.bucket.refresh();
    }
    this.#untidy.clear();
  }

  #bucketFor({ index }: Filter): Bucket<T> {
    if (index === undefined) return this.#others;
    const buckets = this.#byField[index.field];
    const known = buckets.get(index.value);
    if (known !== undefined) return known;
    const bucket = new Bucket<T>();
    buckets.set(index.value, bucket);
    return bucket;
  }
}

/** Goes through what was there when it began. */
function visitBucket<T>(bucket: Bucket<T>, input: FilterInput, visit: (item: T) => void): void {
  if (bucket.only !== undefined) {
    visit(bucket.only);
    return;
  }
  const { entries } = bucket;
  for (let i = 0, many = entries.length; i < many; i++) {
    const { residual, items } = entries[i]!;
    if (residual !== undefined && !residual(input)) continue;
    for (let j = 0, count = items.length; j < count; j++) {
      const item = items[j]!;
      if (item !== GONE) visit(item as T);
    }
  }
}
