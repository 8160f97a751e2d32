import { copyBytes } from './copy-bytes.js';
import { HEADER_BYTES, type Header, writeHeader } from './header.js';

/** Ranges are joined up to this size; a single larger one goes out whole, without a copy. */
const BATCH_BYTES = 65536;
/** From this size on a range is sent by reference: a copy would cost more than a frame of its own. */
const REFERENCE_BYTES = 8192;
/**
 * Room that is made for messages written here: little where they are few, so that 10,000 idle sessions hold next to
 * none. Written back to back they are one range, so the largest slab is also the largest batch of small messages.
 */
const LEAST_SLAB = 1024;
const MOST_SLAB = 4 * BATCH_BYTES;
const NOTHING: Uint8Array = new Uint8Array(0);
const zeroed = (bytes: number): Uint8Array => new Uint8Array(bytes);

/**
 * What a session is about to send: ranges of bytes in order, kept by reference until `flush` makes batches of them.
 * Adjacent ranges of one buffer become one, so a run that is only forwarded is never copied.
 */
export class Outgoing {
  private readonly buffers: Uint8Array[] = [];
  private readonly starts: number[] = [];
  private readonly ends: number[] = [];
  private slab = NOTHING;
  private slabUsed = 0;
  private nextSlab = LEAST_SLAB;
  /** The slab was begun after the last flush. */
  private fresh = false;
  /** Bytes waiting to be flushed. */
  bytes = 0;

  constructor(private readonly allocate: (bytes: number) => Uint8Array = zeroed) {}

  append(buffer: Uint8Array, start: number, end: number): void {
    const last = this.buffers.length - 1;
    if (last >= 0 && this.buffers[last] === buffer && this.ends[last] === start) {
      this.ends[last] = end;
    } else {
      this.buffers.push(buffer);
      this.starts.push(start);
      this.ends.push(end);
    }
    this.bytes += end - start;
  }

  /** Room for one message of `length` bytes, to be written at the returned offset of `target` before anything else happens. */
  reserve(length: number): number {
    if (this.slabUsed + length > this.slab.length) {
      // full before it was flushed once: more of them come at a time
      if (this.fresh) this.nextSlab = Math.min(MOST_SLAB, this.nextSlab * 4);
      this.slab = this.allocate(Math.max(this.nextSlab, length));
      this.slabUsed = 0;
      this.fresh = true;
    }
    const at = this.slabUsed;
    this.slabUsed += length;
    this.append(this.slab, at, at + length);
    return at;
  }

  /** The buffer that the last `reserve` made room in. */
  get target(): Uint8Array {
    return this.slab;
  }

  /** @param size of the payload: what stands behind it in its buffer is not sent */
  message(header: Header, payload = NOTHING, size = payload.length): void {
    const length = HEADER_BYTES + size;
    const at = this.reserve(length);
    writeHeader(this.slab, at, length, header);
    copyBytes(payload, size, this.slab, at + HEADER_BYTES);
  }

  /** Hands everything over in batches and returns how many there were. */
  flush(send: { send(batch: Uint8Array): void }): number {
    const count = this.buffers.length;
    let batches = 0;
    let first = 0;
    while (first < count) {
      let last = first;
      let size = this.ends[first]! - this.starts[first]!;
      while (last + 1 < count && size < BATCH_BYTES) {
        const next = this.ends[last + 1]! - this.starts[last + 1]!;
        if (size + next > BATCH_BYTES || next >= REFERENCE_BYTES || size >= REFERENCE_BYTES) break;
        size += next;
        last++;
      }
      send.send(this.join(first, last, size));
      batches++;
      first = last + 1;
    }
    this.clear();
    return batches;
  }

  /** Gives back the room that is left, and begins small again: call it now and then, after a flush. */
  rest(): void {
    this.slab = NOTHING;
    this.slabUsed = 0;
    this.nextSlab = LEAST_SLAB;
  }

  clear(): void {
    this.buffers.length = 0;
    this.starts.length = 0;
    this.ends.length = 0;
    this.bytes = 0;
    this.fresh = false;
  }

  private join(first: number, last: number, size: number): Uint8Array {
    const buffer = this.buffers[first]!;
    if (first === last) return buffer.subarray(this.starts[first]!, this.ends[first]!);
    const batch = this.allocate(size);
    let at = 0;
    for (let index = first; index <= last; index++) {
      const part = this.buffers[index]!.subarray(this.starts[index]!, this.ends[index]!);
      batch.set(part, at);
      at += part.length;
    }
    return batch;
  }
}
