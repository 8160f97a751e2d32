import type { Clock } from './ports.js';
import { Timer, type TimerOwner, type Timers } from './timers.js';

/**
 * Longest that received batches are handled in one go, ms, beyond the message that is under way: no timer runs
 * meanwhile, and whoever is not heard is given up by its peers.
 */
export const LONGEST_TURN = 20;

/** Somebody with more to do than fits into one turn. */
export interface Resumable {
  /** Goes on until it is done or the clock is at `until`, ms. Returns whether there is more to do. */
  resume(until: number): boolean;
}

/**
 * Those of a process that go on in a later turn, one after the other: however many they are, together they keep the
 * thread no longer than one of them may. What else there is to do, timers and receiving, has its turn in between.
 */
export class Turns implements TimerOwner {
  private readonly waiting = new Set<Resumable>();
  private readonly timer = new Timer(this);

  constructor(
    private readonly clock: Clock,
    private readonly timers: Timers,
  ) {}

  /** How many go on later. */
  get size(): number {
    return this.waiting.size;
  }

  add(item: Resumable): void {
    this.waiting.add(item);
    if (!this.timer.active) this.timers.start(this.timer, 0);
  }

  remove(item: Resumable): void {
    if (this.waiting.delete(item) && this.waiting.size === 0) this.timers.stop(this.timer);
  }

  onTimer(): void {
    const until = this.clock.now() + LONGEST_TURN;
    // those that are not done stand behind those that had no turn yet
    let left = this.waiting.size;
    try {
      for (const item of this.waiting) {
        this.waiting.delete(item);
        if (item.resume(until)) this.waiting.add(item);
        if (--left <= 0 || this.clock.now() >= until) break;
      }
    } finally {
      if (this.waiting.size > 0) this.timers.start(this.timer, 0);
    }
  }
}
