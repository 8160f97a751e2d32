import { TrunklineError } from '@trunkline/proto/errors';

/**
 * Where queues are kept. A store knows chunks of messages and small named records; what they mean is the queue
 * engine's business. Every implementation passes the same contract tests.
 */

/** Messages of one queue that were stored by one commit, back to back as on the wire. */
export interface Chunk {
  /** Sequences of the first and last message; `last - first + 1` messages, without a hole. */
  readonly first: number;
  readonly last: number;
  readonly bytes: Uint8Array;
}

/** What one commit changes: all of it or nothing. Applied in the order of the fields. */
export interface Commit {
  /**
   * New chunks; `first` continues where the queue ends, or is any number where the queue has no chunk. The bytes
   * belong to the store from now on, and an ArrayBuffer that they fill wholly may be detached: whoever wants to go on
   * reading them gives a copy, a view of a larger buffer, or a view of a SharedArrayBuffer.
   */
  readonly append: readonly (Chunk & { readonly queue: number })[];
  /** Records to write, or with `null` to delete: declarations, groups, publishers. */
  readonly put: ReadonlyMap<string, Uint8Array | null>;
  /** Forgets chunks that end at or below `upTo`; a chunk that reaches beyond stays whole. */
  readonly trim: readonly { readonly queue: number; readonly upTo: number }[];
  /** Forgets all chunks of a queue. */
  readonly drop: readonly number[];
}

/** What a queue has when a store is opened. */
export interface StoredQueue {
  readonly queue: number;
  readonly first: number;
  readonly last: number;
  readonly bytes: number;
}

/** A part of a store that cannot be read any more. */
export interface Damage {
  /** Undefined: the store as a whole, or a record. */
  readonly queue: number | undefined;
  readonly first: number;
  /** 2^53-1 where it is not known how far the queue reached. */
  readonly last: number;
  readonly message: string;
}

/** What `read` rejects with where a range is damaged: the chunks on both sides of it can still be read. */
export class StoreDamage extends TrunklineError {
  constructor(readonly damage: Damage) {
    super('STORE_DAMAGED', damage.message);
  }
}

export interface StoreContents {
  readonly records: ReadonlyMap<string, Uint8Array>;
  /** Queues that have chunks and can be written and read. */
  readonly queues: readonly StoredQueue[];
  /**
   * A queue that is named here and not in `queues` takes no chunk until it was dropped; what can be read of it can be
   * read.
   */
  readonly damages: readonly Damage[];
}

export interface Store {
  /** @throws TrunklineError STORE_DAMAGED, STORE_LOCKED, STORE_FULL, STORE_FAILED; nothing stored was changed then */
  open(): Promise<StoreContents>;
  /**
   * Resolves when everything is on the device. Commits are applied in the order of the calls; several may be under
   * way. @throws TrunklineError STORE_FULL, STORE_FAILED; nothing of this commit, or of a later one that was already
   * under way, was applied then
   */
  commit(commit: Commit): Promise<void>;
  /**
   * Chunks from the one that holds `from`, or the first above it, up to about `maxBytes`, at least one if there is
   * any. @throws StoreDamage; TrunklineError STORE_FAILED
   */
  read(queue: number, from: number, maxBytes: number): Promise<readonly Chunk[]>;
  /** Bytes on the device, and what may still be written before it is full, where that is known. */
  usage(): Promise<{ readonly bytes: number; readonly free: number | undefined }>;
  /** Finishes what is under way and lets go. Always resolves. */
  close(): Promise<void>;
}
