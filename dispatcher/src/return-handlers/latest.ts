import { readU32 } from '@trunkline/proto';
import type { LaneDelivery, LaneView, ReturnHandler } from '../handlers.js';
import { keyOf } from '../kept.js';

/** Keys that a lane remembers, and bytes of responses that it holds back; over them the oldest goes out early. */
const MAX_KEYS = 100_000;
const MAX_HELD_BYTES = 16 * 1024 * 1024;

/** Conflation: the newest response per key, at most `rate` a second; what a newer one replaced is not delivered. */
export const latest: ReturnHandler = {
  check: (options) => (options.rate > 0 ? undefined : 'the return handler latest needs a rate above 0'),
  open: (lane, options) => new Latest(lane, 1000 / options.rate),
};

interface Key {
  /** When the key may be sent again. */
  due: number;
  /** The newest response that waits for it. */
  held: Uint8Array | undefined;
}

class Latest implements LaneDelivery {
  /** In the order in which they were last sent, so the next due is first. */
  private readonly keys = new Map<string, Key>();
  private waiting = 0;
  private heldBytes = 0;
  private wakeAt = Number.POSITIVE_INFINITY;

  constructor(
    private readonly lane: LaneView,
    private readonly interval: number,
  ) {}

  deliver(buffer: Uint8Array, start: number, end: number): void {
    const now = this.lane.now();
    for (let at = start; at < end; ) {
      const next = at + readU32(buffer, at);
      this.take(keyOf(buffer, at), buffer, at, next, now);
      at = next;
    }
  }

  private take(name: string, buffer: Uint8Array, start: number, end: number, now: number): void {
    const key = this.keys.get(name);
    if (key === undefined || (key.held === undefined && key.due <= now)) {
      this.sent(name, now);
      this.hand(buffer, start, end);
      return;
    }
    if (key.held === undefined) {
      this.waiting++;
      if (key.due < this.wakeAt) this.wake(key.due, now);
    }
    this.heldBytes += end - start - (key.held?.length ?? 0);
    key.held = buffer.slice(start, end);
    if (this.heldBytes > MAX_HELD_BYTES) this.releaseOldest(now);
  }

  /** Bounds come before the rate. */
  private releaseOldest(now: number): void {
    for (const [name, key] of this.keys) {
      if (key.held !== undefined) this.release(name, key.held, now);
      if (this.heldBytes <= MAX_HELD_BYTES) return;
    }
  }

  private sent(name: string, now: number): void {
    this.keys.delete(name);
    this.keys.set(name, { due: now + this.interval, held: undefined });
    if (this.keys.size > MAX_KEYS) this.forgetOldest();
  }

  private forgetOldest(): void {
    const [name, { held }] = this.keys.entries().next().value!;
    this.keys.delete(name);
    if (held !== undefined) this.handHeld(held);
  }

  private wake(at: number, now: number): void {
    this.wakeAt = at;
    this.lane.wake(Math.max(0, at - now));
  }

  onTimer(): void {
    const now = this.lane.now();
    this.wakeAt = Number.POSITIVE_INFINITY;
    for (const [name, key] of this.keys) {
      if (this.waiting === 0) break;
      if (key.due > now) {
        this.wake(key.due, now);
        break;
      }
      if (key.held !== undefined) this.release(name, key.held, now);
      // it may be sent at once, as one that is not known
      else this.keys.delete(name);
    }
  }

  private release(name: string, held: Uint8Array, now: number): void {
    this.sent(name, now);
    this.handHeld(held);
  }

  private handHeld(held: Uint8Array): void {
    this.waiting--;
    this.heldBytes -= held.length;
    this.hand(held, 0, held.length);
  }

  flush(): void {
    const now = this.lane.now();
    for (const [name, key] of [...this.keys]) {
      if (this.waiting === 0) break;
      if (key.held !== undefined) this.release(name, key.held, now);
    }
  }

  private hand(buffer: Uint8Array, start: number, end: number): void {
    const { members } = this.lane;
    for (let index = 0; index < members.length; index++) members[index]!.send(buffer, start, end, 1);
  }
}
