import { TrunklineError } from '@trunkline/proto/errors';
import type { Chunk, Commit, StoredQueue } from '../queues/store.js';

/** Refuses a chunk that does not continue its queue. `end` is the queue's last sequence, undefined without a chunk. */
export function checkChunk(chunk: Chunk & { readonly queue: number }, end: number | undefined): void {
  const { queue, first, last, bytes } = chunk;
  const reason = !Number.isSafeInteger(queue)
    ? 'its queue is no integer'
    : !(Number.isSafeInteger(first) && Number.isSafeInteger(last) && first >= 1 && last >= first)
      ? 'its sequences are no range'
      : end !== undefined && first !== end + 1
        ? `the queue ends at ${end}`
        : bytes.byteLength === 0
          ? 'it has no bytes'
          : undefined;
  if (reason === undefined) return;
  throw new TrunklineError('OPTION_INVALID', `chunk ${first} to ${last} of queue ${queue}: ${reason}`);
}

/** The chunks of one queue in memory, in order. */
export class ChunkList {
  private chunks: Chunk[] = [];
  /** Where the list begins: forgotten chunks before it are taken out many at a time. */
  private head = 0;
  bytes = 0;

  get empty(): boolean {
    return this.head === this.chunks.length;
  }

  get first(): number | undefined {
    return this.chunks[this.head]?.first;
  }

  get last(): number | undefined {
    return this.empty ? undefined : this.chunks[this.chunks.length - 1]!.last;
  }

  push(chunk: Chunk): void {
    this.chunks.push(chunk);
    this.bytes += chunk.bytes.byteLength;
  }

  trim(upTo: number): void {
    while (!this.empty && this.chunks[this.head]!.last <= upTo) {
      this.bytes -= this.chunks[this.head]!.bytes.byteLength;
      this.head++;
    }
    if (this.head * 2 > this.chunks.length) {
      this.chunks = this.chunks.slice(this.head);
      this.head = 0;
    }
  }

  read(from: number, maxBytes: number): Chunk[] {
    let low = this.head;
    let high = this.chunks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.chunks[middle]!.last < from) low = middle + 1;
      else high = middle;
    }
    const found: Chunk[] = [];
    let size = 0;
    for (let index = low; index < this.chunks.length; index++) {
      const chunk = this.chunks[index]!;
      size += chunk.bytes.byteLength;
      if (found.length > 0 && size > maxBytes) break;
      found.push(chunk);
    }
    return found;
  }
}

/** All that a store keeps, in memory. `apply` takes a commit wholly or throws and takes nothing. */
export class MemoryImage {
  readonly records = new Map<string, Uint8Array>();
  readonly queues = new Map<number, ChunkList>();

  apply({ append, put, trim, drop }: Commit): void {
    const ends = new Map<number, number | undefined>();
    for (const chunk of append) {
      const end = ends.has(chunk.queue) ? ends.get(chunk.queue) : this.queues.get(chunk.queue)?.last;
      checkChunk(chunk, end);
      ends.set(chunk.queue, chunk.last);
    }
    for (const { queue, first, last, bytes } of append) {
      let list = this.queues.get(queue);
      if (list === undefined) {
        list = new ChunkList();
        this.queues.set(queue, list);
      }
      list.push({ first, last, bytes });
    }
    for (const [key, value] of put) {
      if (value === null) this.records.delete(key);
      else this.records.set(key, value);
    }
    for (const { queue, upTo } of trim) {
      const list = this.queues.get(queue);
      list?.trim(upTo);
      if (list?.empty) this.queues.delete(queue);
    }
    for (const queue of drop) this.queues.delete(queue);
  }

  get bytes(): number {
    let bytes = 0;
    for (const list of this.queues.values()) bytes += list.bytes;
    for (const value of this.records.values()) bytes += value.byteLength;
    return bytes;
  }

  stored(): StoredQueue[] {
    return [...this.queues].map(([queue, list]) => ({
      queue,
      first: list.first!,
      last: list.last!,
      bytes: list.bytes,
    }));
  }
}
