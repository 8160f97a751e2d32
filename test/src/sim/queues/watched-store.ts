import type { Chunk, Commit, Store, StoreContents } from '@trunkline/dispatcher/stores';
import { decodeGroup } from '../../../../dispatcher/dist/queues/group-record.js';

/** Hears what a store holds for certain. */
export interface StoreListener {
  /** Position of a group, by the key of its record; `undefined`: it was forgotten. */
  positionStored(key: string, position: number | undefined, opening: boolean): void;
}

/** A store that tells of the groups' records once they are stored. */
export class WatchedStore implements Store {
  constructor(
    private readonly store: Store,
    private readonly listener: StoreListener,
  ) {}

  async open(): Promise<StoreContents> {
    const contents = await this.store.open();
    this.tell(contents.records, true);
    return contents;
  }

  async commit(commit: Commit): Promise<void> {
    await this.store.commit(commit);
    this.tell(commit.put, false);
  }

  private tell(records: ReadonlyMap<string, Uint8Array | null>, opening: boolean): void {
    for (const [key, bytes] of records) {
      if (!key.startsWith('group/')) continue;
      this.listener.positionStored(key, bytes === null ? undefined : decodeGroup(bytes).position, opening);
    }
  }

  read(queue: number, from: number, maxBytes: number): Promise<readonly Chunk[]> {
    return this.store.read(queue, from, maxBytes);
  }

  usage(): ReturnType<Store['usage']> {
    return this.store.usage();
  }

  close(): Promise<void> {
    return this.store.close();
  }
}
