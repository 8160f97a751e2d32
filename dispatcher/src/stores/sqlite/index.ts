import { Worker } from 'node:worker_threads';
import { TrunklineError } from '@trunkline/proto/errors';
import type { Chunk, Commit, Store, StoreContents } from '../../queues/store.js';
import { errorOf } from './faults.js';
import type { Reply, Request, SqliteOptions } from './messages.js';

export type { SqliteOptions } from './messages.js';

interface Asked {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

type Bare<T> = T extends { readonly id: number } ? Omit<T, 'id'> : never;

/** Bytes as they go to the worker: whole buffers are handed over, views are copied, shared memory is shared. */
function portable(bytes: Uint8Array, transfer: ArrayBuffer[]): Uint8Array {
  const { buffer } = bytes;
  if (!(buffer instanceof ArrayBuffer)) return bytes;
  const whole = bytes.byteLength === buffer.byteLength && !transfer.includes(buffer);
  const own = whole ? bytes : new Uint8Array(bytes);
  transfer.push(own.buffer as ArrayBuffer);
  return own;
}

/**
 * Keeps queues in SQLite, in a thread of its own: docs/durability.md says what is promised. A commit is one
 * transaction; while one is written the next can be under way. Nothing it does can end the process.
 */
export class SqliteStore implements Store {
  private worker: Worker | undefined;
  private readonly asked = new Map<number, Asked>();
  private lastId = 0;
  private failures = 0;
  /** Why nothing can be asked (any more). */
  private over: string | undefined = 'the store is not open';
  private closing: Promise<void> | undefined;

  /** `script`: another worker, for tests of its end. */
  constructor(
    private readonly options: SqliteOptions,
    private readonly script: URL = new URL('./worker.js', import.meta.url),
  ) {}

  async open(): Promise<StoreContents> {
    if (this.worker !== undefined) throw new TrunklineError('STORE_FAILED', 'the store was opened before');
    const worker = new Worker(this.script, { workerData: this.options });
    this.worker = worker;
    this.over = undefined;
    worker.on('message', (reply: Reply) => this.onReply(reply));
    worker.on('messageerror', (error) => this.end(`an answer could not be read: ${error.message}`));
    worker.on('error', (error) => this.end(`its thread failed: ${error.message}`));
    worker.on('exit', () => this.end('its thread has ended'));
    try {
      return await this.ask<StoreContents>({ kind: 'open' });
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  commit(commit: Commit): Promise<void> {
    const transfer: ArrayBuffer[] = [];
    const append = commit.append.map(({ queue, first, last, bytes }) => ({
      queue,
      first,
      last,
      bytes: portable(bytes, transfer),
    }));
    const put = new Map<string, Uint8Array | null>();
    // records are small and stay with the caller: cloning takes the whole buffer behind a view
    for (const [key, value] of commit.put) put.set(key, value === null ? null : new Uint8Array(value));
    const { trim, drop } = commit;
    return this.ask({ kind: 'commit', failures: this.failures, commit: { append, put, trim, drop } }, transfer);
  }

  read(queue: number, from: number, maxBytes: number): Promise<readonly Chunk[]> {
    return this.ask({ kind: 'read', queue, from, max: maxBytes });
  }

  usage(): Promise<{ readonly bytes: number; readonly free: number | undefined }> {
    return this.ask({ kind: 'usage' });
  }

  close(): Promise<void> {
    this.closing ??= this.shut();
    return this.closing;
  }

  private async shut(): Promise<void> {
    if (this.over === undefined) {
      const closed = this.ask({ kind: 'close' });
      this.over = 'the store was closed';
      await closed.catch(() => undefined);
    }
    await this.worker?.terminate();
  }

  private ask<T>(request: Bare<Request>, transfer: ArrayBuffer[] = []): Promise<T> {
    if (this.over !== undefined) return Promise.reject(new TrunklineError('STORE_FAILED', this.over));
    const id = ++this.lastId;
    return new Promise<T>((resolve, reject) => {
      this.asked.set(id, { resolve, reject });
      try {
        this.worker?.postMessage({ ...request, id }, transfer);
      } catch (error) {
        this.asked.delete(id);
        reject(new TrunklineError('STORE_FAILED', `handing over: ${(error as Error).message}`, { cause: error }));
      }
    });
  }

  private onReply(reply: Reply): void {
    const asked = this.asked.get(reply.id);
    if (asked === undefined) return;
    this.asked.delete(reply.id);
    if (!('fault' in reply)) {
      asked.resolve(reply.value as never);
      return;
    }
    this.failures = reply.failures ?? this.failures;
    asked.reject(errorOf(reply.fault));
  }

  private end(reason: string): void {
    this.over ??= `the store cannot go on: ${reason}`;
    const waiting = [...this.asked.values()];
    this.asked.clear();
    for (const { reject } of waiting) reject(new TrunklineError('STORE_FAILED', this.over));
  }
}
