import { TrunklineError } from '@trunkline/proto/errors';
import type { Chunk, Commit, Store, StoreContents } from '../queues/store.js';
import { MemoryImage } from './chunk-list.js';

/** Keeps everything in memory and nothing beyond the process. */
export class MemoryStore implements Store {
  private readonly image = new MemoryImage();
  private failure: unknown;
  private state: 'new' | 'open' | 'closed' = 'new';

  async open(): Promise<StoreContents> {
    if (this.state !== 'new') throw new TrunklineError('STORE_FAILED', 'the store was opened before');
    this.state = 'open';
    return { records: new Map(), queues: [], damages: [] };
  }

  commit(commit: Commit): Promise<void> {
    try {
      this.check();
      if (this.failure === undefined) {
        this.image.apply(commit);
        return Promise.resolve();
      }
    } catch (error) {
      this.failure = error;
    }
    const failed = Promise.reject(this.failure);
    // what is committed before the caller can have heard of the failure fails with it
    failed.catch(() => {
      this.failure = undefined;
    });
    return failed;
  }

  async read(queue: number, from: number, maxBytes: number): Promise<readonly Chunk[]> {
    this.check();
    return this.image.queues.get(queue)?.read(from, maxBytes) ?? [];
  }

  async usage(): Promise<{ bytes: number; free: undefined }> {
    this.check();
    return { bytes: this.image.bytes, free: undefined };
  }

  async close(): Promise<void> {
    this.state = 'closed';
  }

  private check(): void {
    if (this.state !== 'open') throw new TrunklineError('STORE_FAILED', 'the store is not open');
  }
}
