import { readU32 } from '@trunkline/proto';
import { CachedChunk } from './chunk-cache.js';
import { type Confirm, Publisher, type PublishRefusal, type Run } from './publisher.js';
import type { Queue } from './queue.js';
import { stamp } from './stored-message.js';

/** Publishers a queue remembers; the one that was idle for longest goes first. */
export const MAX_PUBLISHERS = 1024;

/** Messages of one queue in one commit. */
export interface Batch {
  readonly queue: Queue;
  readonly chunk: CachedChunk;
  readonly runs: readonly Run[];
}

/** What may still go into a commit. */
export interface Budget {
  bytes: number;
  messages: number;
}

/** What comes into a queue, until it is stored: takes or refuses it, gives it its sequences, and tells its publisher. */
export class Inlet {
  readonly publishers = new Map<string, Publisher>();
  private lastUsed: Publisher | undefined;
  private pending: Run[] = [];
  private pendingCount = 0;
  private pendingBytes = 0;
  /** In commits that are on their way. */
  private committingBytes = 0;

  constructor(private readonly queue: Queue) {}

  publisher(id: string): Publisher {
    if (this.lastUsed?.id === id) return this.lastUsed;
    const { publishers } = this;
    const publisher = publishers.get(id) ?? new Publisher(id);
    // the last one to be forgotten from now on
    publishers.delete(id);
    publishers.set(id, publisher);
    this.lastUsed = publisher;
    if (publishers.size > MAX_PUBLISHERS) this.forgetPublishers();
    return publisher;
  }

  private forgetPublishers(): void {
    for (const [id, publisher] of this.publishers) {
      if (this.publishers.size <= MAX_PUBLISHERS) return;
      if (publisher.busy || publisher === this.lastUsed) continue;
      this.publishers.delete(id);
      this.queue.host.publisherChanged(this.queue, undefined, id);
    }
  }

  /**
   * Messages back to back, with publish numbers from `number` on. The bytes are never written by the caller again.
   * What was stored before is confirmed as it was then.
   */
  publish(
    publisher: Publisher,
    buffer: Uint8Array,
    start: number,
    end: number,
    count: number,
    number: number,
    confirm: Confirm,
  ): void {
    if (number > publisher.last) {
      this.accept(publisher, buffer, start, end, count, number, confirm);
      return;
    }
    let next = number;
    let joined: Run | undefined;
    for (let at = start; at < end; at += readU32(buffer, at)) {
      const known = next > publisher.last ? undefined : publisher.find(next);
      if (known === undefined) this.accept(publisher, buffer, at, at + readU32(buffer, at), 1, next, confirm);
      else if (known === 'forgotten') confirm.refused(next, 1, FORGOTTEN);
      else if (isRun(known)) {
        if (known !== joined) known.confirm = both(known.confirm, confirm);
        joined = known;
      } else confirm.stored(next, 1, known.sequence);
      next++;
    }
  }

  /** A message of the dispatcher's own. */
  append(message: Uint8Array, confirm: Confirm): void {
    this.accept(undefined, message, 0, message.length, 1, 0, confirm);
  }

  private accept(
    publisher: Publisher | undefined,
    buffer: Uint8Array,
    start: number,
    end: number,
    count: number,
    number: number,
    confirm: Confirm,
  ): void {
    const refusal = this.refusal(end - start, count);
    if (refusal !== undefined) {
      if (count === 1) confirm.refused(number, 1, refusal);
      else this.acceptEach(publisher, buffer, start, end, number, confirm);
      return;
    }
    const run: Run = { publisher, buffer, start, end, number, count, confirm, sequence: 0 };
    publisher?.added(run);
    this.pending.push(run);
    this.pendingCount += count;
    this.pendingBytes += end - start;
    this.queue.host.queueChanged(this.queue, true);
  }

  /** A part of the run may still fit. */
  private acceptEach(
    publisher: Publisher | undefined,
    buffer: Uint8Array,
    start: number,
    end: number,
    number: number,
    confirm: Confirm,
  ): void {
    let next = number;
    for (let at = start; at < end; at += readU32(buffer, at)) {
      this.accept(publisher, buffer, at, at + readU32(buffer, at), 1, next++, confirm);
    }
  }

  private refusal(bytes: number, count: number): PublishRefusal | undefined {
    const { queue } = this;
    if (queue.closed) return { code: 'UNKNOWN_SERVICE', message: 'the queue was deleted', retryable: false };
    const { maxMessage, maxMessages, maxBytes, full } = queue.options;
    if (bytes > maxMessage && count === 1) {
      const message = `the message has ${bytes} bytes, the queue takes at most ${maxMessage}`;
      return { code: 'MESSAGE_TOO_LARGE', message, retryable: false };
    }
    if (queue.damage !== undefined) return { code: 'STORE_DAMAGED', message: queue.damage, retryable: false };
    if (queue.durable) {
      const refusal = queue.host.refusal();
      if (refusal !== undefined) return refusal;
    }
    // a run with one message that is too large is looked at message by message
    if (bytes > maxMessage) return QUEUE_FULL;
    if (full === 'dropOldest') return undefined;
    if (this.fits(bytes, count, maxMessages, maxBytes)) return undefined;
    // what is only kept for groups to come makes room first
    queue.release();
    return this.fits(bytes, count, maxMessages, maxBytes) ? undefined : QUEUE_FULL;
  }

  private fits(bytes: number, count: number, maxMessages: number, maxBytes: number): boolean {
    const { queue } = this;
    const messages = queue.depth + this.pendingCount + (queue.assigned - queue.last) + count;
    if (maxMessages > 0 && messages > maxMessages) return false;
    return maxBytes === 0 || queue.bytes + this.committingBytes + this.pendingBytes + bytes <= maxBytes;
  }

  get hasPending(): boolean {
    return this.pending.length > 0;
  }

  /** Takes messages for a commit, as one chunk; a publisher's messages stand together in it. */
  cut(budget: Budget): Batch | undefined {
    const taken = this.take(budget);
    if (taken.length === 0) return undefined;
    const byPublisher = new Map<Publisher | undefined, Run[]>();
    let bytes = 0;
    let count = 0;
    for (const run of taken) {
      const runs = byPublisher.get(run.publisher);
      if (runs === undefined) byPublisher.set(run.publisher, [run]);
      else runs.push(run);
      bytes += run.end - run.start;
      count += run.count;
    }
    const { queue } = this;
    const chunk = new CachedChunk(queue.assigned + 1, queue.assigned + count, new Uint8Array(bytes));
    const time = queue.time();
    const runs = [...byPublisher.values()].flat();
    let at = 0;
    let sequence = chunk.first;
    for (const run of runs) {
      chunk.bytes.set(run.buffer.subarray(run.start, run.end), at);
      run.sequence = sequence;
      sequence = stamp(chunk.bytes, at, at + run.end - run.start, sequence, time);
      at += run.end - run.start;
      if (run.publisher === undefined) {
        run.confirm.assigned?.();
        continue;
      }
      run.publisher.assigned(run);
      queue.host.publisherChanged(queue, run.publisher, run.publisher.id);
    }
    queue.assigned = chunk.last;
    this.committingBytes += bytes;
    return { queue, chunk, runs };
  }

  private take(budget: Budget): Run[] {
    const { maxBytes } = this.queue.options;
    // small chunks where the queue is small, so that dropping the oldest does not drop everything
    let most = maxBytes > 0 ? Math.min(budget.bytes, Math.ceil(maxBytes / 8)) : budget.bytes;
    let taken = 0;
    while (taken < this.pending.length) {
      const run = this.pending[taken]!;
      const size = run.end - run.start;
      if (taken > 0 && (size > most || run.count > budget.messages)) break;
      most -= size;
      budget.bytes -= size;
      budget.messages -= run.count;
      this.pendingBytes -= size;
      this.pendingCount -= run.count;
      taken++;
    }
    return this.pending.splice(0, taken);
  }

  /** A batch is stored. */
  stored(runs: readonly Run[]): void {
    for (const run of runs) {
      this.committingBytes -= run.end - run.start;
      run.publisher?.settled(run);
      run.confirm.stored(run.number, run.count, run.sequence);
    }
  }

  /** Nothing of a batch was stored. */
  failed(runs: readonly Run[], refusal: PublishRefusal): void {
    for (const run of runs) {
      this.committingBytes -= run.end - run.start;
      if (run.publisher !== undefined) {
        run.publisher.unassigned(run);
        run.publisher.settled(run);
        this.queue.host.publisherChanged(this.queue, run.publisher, run.publisher.id);
      }
      run.confirm.refused(run.number, run.count, refusal);
    }
  }

  /** What waits to be stored is not. */
  refuse(refusal: PublishRefusal): void {
    this.pendingBytes = 0;
    this.pendingCount = 0;
    for (const run of this.pending.splice(0)) {
      run.publisher?.settled(run);
      run.confirm.refused(run.number, run.count, refusal);
    }
  }
}

const QUEUE_FULL: PublishRefusal = Object.freeze({
  code: 'QUEUE_FULL',
  message: 'the queue is at its bound',
  retryable: true,
});
const FORGOTTEN: PublishRefusal = Object.freeze({
  code: 'REQUEST_INVALID',
  message: 'the publish number is older than what the queue remembers of the publisher',
  retryable: false,
});

/** A message that is sent again while the first one is not stored yet: both get the answer. */
function both(one: Confirm, other: Confirm): Confirm {
  return {
    stored(...told) {
      one.stored(...told);
      other.stored(...told);
    },
    refused(...told) {
      one.refused(...told);
      other.refused(...told);
    },
  };
}

function isRun(known: Run | { readonly sequence: number }): known is Run {
  return 'confirm' in known;
}
