import { randomBytes, randomInt } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { type FaultListener, reportFault } from './fault.js';
import type { Clock, Random } from './ports.js';
import { type Alarm, MAX_DELAY, Timers } from './timers.js';

/** Milliseconds since the process began; setting the date does not move it (F56). */
export const systemClock: Clock = { now: () => performance.now() };

const RANDOM_BITS = 48;

export const systemRandom: Random = {
  next: () => randomInt(2 ** RANDOM_BITS - 1) / 2 ** RANDOM_BITS,
  bytes: (length) => Uint8Array.from(randomBytes(length)),
};

/** A plain array, not a Buffer, of bytes as they come: zeroing them takes as long as writing them. */
export function allocate(bytes: number): Uint8Array {
  return new Uint8Array(Buffer.allocUnsafeSlow(bytes).buffer);
}

export interface NodeAlarmOptions {
  /** Whether an active timer keeps the process alive; true unless given. */
  readonly ref?: boolean;
  /** The clock of the timers that it drives; `systemClock` unless given. */
  readonly clock?: Clock;
  /** Hears what `advance` throws; without it that is an uncaught exception. */
  readonly onFault?: FaultListener | undefined;
}

/**
 * Calls `advance` at the deadline by one setTimeout, whatever the number of timers. With no timer active there is none
 * (F28).
 */
export class NodeAlarm implements Alarm {
  readonly #advance: () => void;
  readonly #ref: boolean;
  readonly #clock: Clock;
  readonly #onFault: FaultListener | undefined;
  #timeout: NodeJS.Timeout | undefined;
  /** When the timeout comes; not later than the deadline, and earlier when that is far away. */
  #at = 0;

  constructor(advance: () => void, options: NodeAlarmOptions = {}) {
    this.#advance = advance;
    this.#ref = options.ref ?? true;
    this.#clock = options.clock ?? systemClock;
    this.#onFault = options.onFault;
  }

  set(deadline: number): void {
    if (this.#timeout !== undefined) {
      // an early call of `advance` costs less than a new timeout at every set
      if (this.#at <= deadline) return;
      clearTimeout(this.#timeout);
    }
    const now = this.#clock.now();
    const delay = Math.min(MAX_DELAY, Math.max(1, Math.ceil(deadline - now)));
    this.#at = now + delay;
    this.#timeout = setTimeout(this.#onTimeout, delay);
    if (!this.#ref) this.#timeout.unref();
  }

  clear(): void {
    clearTimeout(this.#timeout);
    this.#timeout = undefined;
  }

  readonly #onTimeout = (): void => {
    this.#timeout = undefined;
    try {
      this.#advance();
    } catch (error) {
      reportFault(this.#onFault, error);
    }
  };
}

/** Timers on the system clock, driven by themselves. */
export function createNodeTimers(options: Omit<NodeAlarmOptions, 'clock'> = {}): Timers {
  const timers: Timers = new Timers(systemClock, new NodeAlarm(() => timers.advance(), options));
  return timers;
}
