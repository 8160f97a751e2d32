import { Buffer } from 'node:buffer';

/** What is allocated to read into, bytes: the least at first, twice as much whenever all of it was read at once. */
const LEAST_SLAB = 64 * 1024;
const MOST_SLAB = 1024 * 1024;
/** Up to this much is copied out, so that somebody who keeps a message of a slow stream keeps no slab. */
const COPIED = 16 * 1024;

/**
 * Where a socket reads to: many batches with one call of the system, and each of them in one piece. Left to itself, Node
 * reads 64 KiB at a time, and a longer batch has to be put together.
 */
export class ReadRoom {
  private size = LEAST_SLAB;
  private slab = Buffer.alloc(0);
  private used = 0;

  /** The place for what is read next. */
  next(): Uint8Array {
    if (this.slab.length - this.used < this.size / 4) {
      this.slab = Buffer.allocUnsafeSlow(this.size);
      this.used = 0;
    }
    return this.slab.subarray(this.used);
  }

  /** The bytes that were read there, which nobody writes from now on. */
  take(bytes: number): Buffer {
    const { slab, used } = this;
    if (bytes <= COPIED) {
      const copy = Buffer.allocUnsafeSlow(bytes);
      slab.copy(copy, 0, used, used + bytes);
      return copy;
    }
    this.used += bytes;
    if (this.used === slab.length) this.size = Math.min(MOST_SLAB, this.size * 2);
    return slab.subarray(used, used + bytes);
  }
}
