import { TrunklineError } from '@trunkline/proto';
import { CachedChunk, ChunkCache, isSound } from './chunk-cache.js';
import { MIB } from './options.js';
import type { Queue } from './queue.js';
import { storedAt } from './stored-message.js';

/** Newest messages of a queue on disk that are kept in memory for readers at its end. */
const CACHE_BYTES = 8 * MIB;
/** What is read from the store at once for a reader that is behind. */
const READ_BYTES = MIB;

/** Where the messages of a queue come from: memory for those at its end, the store for those behind. */
export class ChunkSource {
  readonly cache: ChunkCache;

  constructor(private readonly queue: Queue) {
    this.cache = new ChunkCache(queue.durable ? CACHE_BYTES : Number.POSITIVE_INFINITY);
  }

  find(sequence: number): CachedChunk | undefined {
    return this.cache.find(sequence);
  }

  /** Chunks of the store from the one with `sequence` on. @throws TrunklineError STORE_DAMAGED, STORE_FAILED */
  async read(sequence: number, maxBytes = READ_BYTES): Promise<CachedChunk[]> {
    if (!this.queue.durable || this.queue.host.store === undefined) return [];
    const chunks = await this.queue.host.store.read(this.queue.id, sequence, maxBytes);
    const sound: CachedChunk[] = [];
    for (const chunk of chunks) {
      if (!isSound(chunk)) {
        if (sound.length > 0) break;
        const { first, last } = chunk;
        const error = new TrunklineError('STORE_DAMAGED', `messages ${first} to ${last} of a queue cannot be read`);
        throw Object.assign(error, { damage: { first, last } });
      }
      sound.push(new CachedChunk(chunk.first, chunk.last, chunk.bytes));
    }
    return sound;
  }

  /** The chunk with a message, from wherever it is; undefined when the message is not there any more. */
  async load(sequence: number): Promise<CachedChunk | undefined> {
    const cached = this.find(sequence);
    if (cached !== undefined) return cached;
    if (sequence <= this.queue.floor || sequence > this.queue.last) return undefined;
    const [chunk] = await this.read(sequence, 1);
    return chunk !== undefined && chunk.first <= sequence && chunk.last >= sequence ? chunk : undefined;
  }

  /** When the oldest message was stored, in the queues' time; undefined when there is none. */
  async oldest(): Promise<number | undefined> {
    const first = this.queue.floor + 1;
    const chunk = await this.load(first);
    return chunk && storedAt(chunk.bytes, chunk.offsetOf(first));
  }
}

/** Which messages an error of reading takes with it; undefined: it may go better next time. */
export function damageOf(error: unknown): { first: number; last: number } | undefined {
  if (!(error instanceof TrunklineError) || error.code !== 'STORE_DAMAGED') return undefined;
  return (error as TrunklineError & { damage?: { first: number; last: number } }).damage;
}
