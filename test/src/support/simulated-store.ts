import {
  type Chunk,
  type Commit,
  type Damage,
  MemoryImage,
  type Store,
  type StoreContents,
  StoreDamage,
} from '@trunkline/dispatcher/stores';
import { type Random, TrunklineError } from '@trunkline/proto';

/** How the disk behaves; may be changed at any time. */
export interface DiskBehaviour {
  /** Time of one flush, milliseconds: anything between the two. */
  flush: readonly [least: number, most: number];
  /** Time of one read, milliseconds. */
  read: readonly [least: number, most: number];
  /** Bytes that fit. Commits that only trim, drop or write records always fit, as with the durable store. */
  capacity: number;
}

interface Pending {
  readonly commit: Commit;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
  readonly store: SimulatedStore;
}

/** Clones what the store was given, as a disk does: whoever goes on writing into its buffer changes nothing here. */
function frozen(commit: Commit): Commit {
  const put = new Map<string, Uint8Array | null>();
  for (const [key, value] of commit.put) put.set(key, value?.slice() ?? null);
  const append = commit.append.map((chunk) => ({ ...chunk, bytes: chunk.bytes.slice() }));
  return { append, put, trim: [...commit.trim], drop: [...commit.drop] };
}

/**
 * A disk that outlives the processes that use it. What was flushed stays; at a crash, of the commits under way some
 * first ones may have reached it all the same, chosen by the random numbers. Commits are flushed one after the other.
 */
export class SimulatedDisk {
  readonly behaviour: DiskBehaviour = { flush: [0, 2], read: [0, 2], capacity: Number.POSITIVE_INFINITY };
  private image = new MemoryImage();
  private damages: Damage[] = [];
  private pending: Pending[] = [];
  private flushing = false;
  private holder: SimulatedStore | undefined;
  private readsToFail = 0;
  private commitsToFail = 0;
  /** Commits that were answered, for checkers. */
  flushed = 0;

  constructor(
    private readonly random: Random,
    /** Runs something later on the virtual clock. */
    private readonly after: (milliseconds: number, run: () => void) => void,
  ) {}

  /** The store as a process sees it, to be opened once. */
  attach(): SimulatedStore {
    return new SimulatedStore(this);
  }

  /** The process is gone, without a word: none of its promises settles any more. */
  crash(): void {
    const reached = Math.floor(this.random.next() * (this.pending.length + 1));
    for (const { commit } of this.pending.slice(0, reached)) {
      if (!this.fits(commit)) break;
      this.image.apply(commit);
    }
    this.pending = [];
    this.flushing = false;
    this.holder = undefined;
  }

  /** Somebody takes everything away while no process has it. */
  wipe(): void {
    this.image = new MemoryImage();
  }

  /** Marks sequences as unreadable, for now and for every later opening. */
  damage(queue: number, first: number, last: number): void {
    const message = `queue ${queue}: messages ${first} to ${last} cannot be read`;
    this.damages.push({ queue, first, last, message });
  }

  /** The next reads fail as if the device did. */
  failReads(count: number): void {
    this.readsToFail = count;
  }

  /** The next commits fail as if the device did. */
  failCommits(count: number): void {
    this.commitsToFail = count;
  }

  /** @internal */
  open(store: SimulatedStore): StoreContents {
    if (this.holder !== undefined) throw new TrunklineError('STORE_LOCKED', 'another process has the store');
    this.holder = store;
    return { records: new Map(this.image.records), queues: this.image.stored(), damages: [] };
  }

  /** @internal */
  commit(store: SimulatedStore, commit: Commit): Promise<void> {
    return new Promise((resolve, reject) => {
      this.pending.push({ commit: frozen(commit), resolve, reject, store });
      this.flush();
    });
  }

  /** @internal */
  read(store: SimulatedStore, queue: number, from: number, maxBytes: number): Promise<Chunk[]> {
    return new Promise((resolve, reject) => {
      this.later(this.behaviour.read, store, () => {
        try {
          resolve(this.readNow(queue, from, maxBytes));
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  /** @internal */
  usage(): { bytes: number; free: number | undefined } {
    const { bytes } = this.image;
    const { capacity } = this.behaviour;
    return { bytes, free: Number.isFinite(capacity) ? Math.max(0, capacity - bytes) : undefined };
  }

  /** @internal */
  async release(store: SimulatedStore): Promise<void> {
    while (this.holder === store && this.pending.length > 0) {
      await new Promise<void>((resolve) => this.later([1, 1], store, resolve));
    }
    if (this.holder === store) this.holder = undefined;
  }

  private readNow(queue: number, from: number, maxBytes: number): Chunk[] {
    if (this.readsToFail > 0) {
      this.readsToFail--;
      throw new TrunklineError('STORE_FAILED', 'reading: the device fails');
    }
    const chunks = this.image.queues.get(queue)?.read(from, maxBytes) ?? [];
    const bad = (chunk: Chunk) =>
      this.damages.find(({ queue: q, first, last }) => q === queue && first <= chunk.last && last >= chunk.first);
    const index = chunks.findIndex((chunk) => bad(chunk) !== undefined);
    if (index === -1) return chunks.map((chunk) => ({ ...chunk, bytes: chunk.bytes.slice() }));
    if (index > 0) return chunks.slice(0, index);
    const { first, last } = chunks[0]!;
    throw new StoreDamage({ queue, first, last, message: bad(chunks[0]!)!.message });
  }

  private flush(): void {
    if (this.flushing || this.pending.length === 0) return;
    this.flushing = true;
    const [head] = this.pending;
    this.later(this.behaviour.flush, head!.store, () => {
      this.flushing = false;
      const fault = this.write(head!.commit);
      if (fault === undefined) {
        this.pending.shift();
        this.flushed++;
        head!.resolve();
        this.flush();
        return;
      }
      // whoever had not heard of the failure when it committed fails with it
      const failed = this.pending;
      this.pending = [];
      for (const { reject } of failed) reject(fault);
    });
  }

  private write(commit: Commit): Error | undefined {
    if (this.commitsToFail > 0) {
      this.commitsToFail--;
      return new TrunklineError('STORE_FAILED', 'storing: the device fails');
    }
    if (!this.fits(commit)) {
      return new TrunklineError('STORE_FULL', 'storing: the device is full', { retryable: true });
    }
    try {
      this.image.apply(commit);
      return undefined;
    } catch (error) {
      return error as Error;
    }
  }

  private fits({ append }: Commit): boolean {
    const size = append.reduce((sum, { bytes }) => sum + bytes.byteLength, 0);
    return size === 0 || this.image.bytes + size <= this.behaviour.capacity;
  }

  private later([least, most]: readonly [number, number], store: SimulatedStore, run: () => void): void {
    this.after(least + this.random.next() * (most - least), () => {
      if (this.holder === store) run();
    });
  }
}

/** What one process holds of a simulated disk. */
export class SimulatedStore implements Store {
  private state: 'new' | 'open' | 'closed' = 'new';

  constructor(private readonly disk: SimulatedDisk) {}

  async open(): Promise<StoreContents> {
    if (this.state !== 'new') throw new TrunklineError('STORE_FAILED', 'the store was opened before');
    const contents = this.disk.open(this);
    this.state = 'open';
    return contents;
  }

  async commit(commit: Commit): Promise<void> {
    this.check();
    await this.disk.commit(this, commit);
  }

  async read(queue: number, from: number, maxBytes: number): Promise<readonly Chunk[]> {
    this.check();
    return this.disk.read(this, queue, from, maxBytes);
  }

  async usage(): Promise<{ readonly bytes: number; readonly free: number | undefined }> {
    this.check();
    return this.disk.usage();
  }

  async close(): Promise<void> {
    if (this.state !== 'open') return;
    this.state = 'closed';
    await this.disk.release(this);
  }

  private check(): void {
    if (this.state !== 'open') throw new TrunklineError('STORE_FAILED', 'the store is not open');
  }
}
