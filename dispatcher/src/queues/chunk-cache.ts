import { OFFSET, readU32, readU53 } from '@trunkline/proto';
import type { Chunk } from './store.js';

/** A chunk in memory. */
export class CachedChunk implements Chunk {
  private offsets: Uint32Array | undefined;

  constructor(
    readonly first: number,
    readonly last: number,
    readonly bytes: Uint8Array,
  ) {}

  /** Where a message begins. */
  offsetOf(sequence: number): number {
    if (sequence === this.first) return 0;
    this.offsets ??= this.index();
    return this.offsets[sequence - this.first]!;
  }

  private index(): Uint32Array {
    const offsets = new Uint32Array(this.last - this.first + 1);
    let index = 0;
    for (let at = 0; at < this.bytes.length; at += readU32(this.bytes, at)) offsets[index++] = at;
    return offsets;
  }
}

/** Whether a chunk from a store is what it says it is, so that nobody reads beyond it. */
export function isSound({ first, last, bytes }: Chunk): boolean {
  let at = 0;
  for (let sequence = first; sequence <= last; sequence++) {
    if (bytes.length - at < 32) return false;
    const length = readU32(bytes, at);
    if (length < 32 || length > bytes.length - at || readU53(bytes, at + OFFSET.sequence) !== sequence) return false;
    at += length;
  }
  return at === bytes.length;
}

/** The newest chunks of a queue, in order; with a bound of bytes the oldest go first. */
export class ChunkCache {
  private chunks: CachedChunk[] = [];
  private head = 0;
  bytes = 0;

  constructor(private readonly maxBytes: number) {}

  append(chunk: CachedChunk): void {
    this.chunks.push(chunk);
    this.bytes += chunk.bytes.length;
    while (this.bytes > this.maxBytes && this.chunks.length - this.head > 1) this.shift();
  }

  private shift(): void {
    this.bytes -= this.chunks[this.head]!.bytes.length;
    this.head++;
    if (this.head * 2 < this.chunks.length) return;
    this.chunks = this.chunks.slice(this.head);
    this.head = 0;
  }

  find(sequence: number): CachedChunk | undefined {
    const { chunks } = this;
    let low = this.head;
    let high = chunks.length;
    if (low === high || chunks[low]!.first > sequence) return undefined;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (chunks[middle]!.last < sequence) low = middle + 1;
      else high = middle;
    }
    return chunks[low];
  }

  get oldest(): CachedChunk | undefined {
    return this.chunks[this.head];
  }

  /** Forgets chunks that end at or below a sequence. */
  trim(upTo: number): void {
    while (this.head < this.chunks.length && this.chunks[this.head]!.last <= upTo) this.shift();
  }
}
