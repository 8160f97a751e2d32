import { TrunklineError } from './errors.js';
import type { Clock } from './ports.js';

/** Longest delay of a timer, in milliseconds: 2^31-1, a little under 25 days. */
export const MAX_DELAY = 2147483647;

/** Hears of its timers. An owner may start and stop any timer from inside the call. */
export interface TimerOwner {
  onTimer(timer: Timer): void;
}

/**
 * One timer. Intrusive: made once by its owner, started and stopped many times without allocation. It belongs to one
 * `Timers` for as long as it is active. `kind` is the owner's own, to tell its timers apart.
 */
export class Timer {
  readonly owner: TimerOwner;
  readonly kind: number;
  /** When it is due, in whole milliseconds of the clock; of an inactive timer: when it was due last. */
  deadline = 0;
  /** @internal Its neighbours in a slot's ring; itself while it is in none. */
  next: Timer = this;
  /** @internal */
  previous: Timer = this;

  constructor(owner: TimerOwner, kind = 0) {
    this.owner = owner;
    this.kind = kind;
  }

  get active(): boolean {
    return this.next !== this;
  }
}

/** Tells the driver when to call `advance` next. The driver may call late; called early, `advance` sets it again. */
export interface Alarm {
  set(deadline: number): void;
  clear(): void;
}

/*
 * A hierarchical wheel over ticks of 1 ms, counted from the first moment. A tick is read as eleven digits of five
 * bits. A timer stands at the level of the highest digit in which its tick differs from the cursor, in the slot of its
 * own digit there. So all timers of one tick are always in one slot in the order they were started, the lowest
 * occupied slot of the lowest occupied level holds the earliest, and nothing ever wraps.
 * A tick is kept as two halves of 30 and 23 bits, because bit operations work on 32.
 */
const DIGIT_BITS = 5;
const SLOTS = 1 << DIGIT_BITS;
const HALF_LEVELS = 6;
const HALF = 2 ** (HALF_LEVELS * DIGIT_BITS);
const LEVELS = 11;
/** The ring of timers that were started during `advance` and are due already. */
const FRESH = LEVELS * SLOTS;

const nobody: TimerOwner = { onTimer() {} };

/** All timers of a process part in one structure: start and stop cost the same however many there are. */
export class Timers {
  readonly #clock: Clock;
  readonly #alarm: Alarm | undefined;
  /** Clock value of tick 0. */
  readonly #origin: number;
  /** Heads of the slots' rings; `kind` of a head is its index. */
  readonly #heads: Timer[] = [];
  /** One bit for each slot of a level that is not empty. */
  readonly #occupied = new Int32Array(LEVELS + 1);
  /** Per slot: no timer in it has an earlier tick. Exact, unless the earliest was stopped. */
  readonly #earliest = new Float64Array(FRESH + 1);
  /** Everything before the cursor has fired. */
  #cursorLow = 0;
  #cursorHigh = 0;
  #size = 0;
  #alarmAt = Number.POSITIVE_INFINITY;
  /** The tick up to which `advance` is firing; -1 outside it. */
  #target = -1;

  constructor(clock: Clock, alarm?: Alarm) {
    this.#clock = clock;
    this.#alarm = alarm;
    this.#origin = Math.floor(clock.now());
    for (let index = 0; index <= FRESH; index++) this.#heads.push(new Timer(nobody, index));
  }

  /** How many timers are active. */
  get size(): number {
    return this.#size;
  }

  /**
   * Starts the timer, or starts it anew when it is active. Timers fire in the order of their deadlines, those of one
   * deadline in the order they were started, and never early: deadlines are rounded up to whole milliseconds. A delay
   * of 0 is due at the next `advance`.
   * @param delay milliseconds, 0..MAX_DELAY
   * @throws TrunklineError OPTION_INVALID; the timer is as it was then
   */
  start(timer: Timer, delay: number): void {
    if (!Number.isFinite(delay) || delay < 0 || delay > MAX_DELAY)
      throw new TrunklineError('OPTION_INVALID', `a delay must be 0..${MAX_DELAY} ms, not ${delay}`);
    if (timer.active) this.#unlink(timer);
    else this.#size++;
    const now = this.#clock.now() - this.#origin;
    const passed = Math.max(this.#cursorHigh * HALF + this.#cursorLow, this.#target);
    const tick = Math.max(passed, delay === 0 ? Math.floor(now) : Math.ceil(now + delay));
    timer.deadline = this.#origin + tick;
    if (tick <= this.#target) this.#append(timer, FRESH, tick);
    else this.#append(timer, this.#slotOf(tick), tick);
    if (this.#target < 0 && timer.deadline < this.#alarmAt) {
      this.#alarmAt = timer.deadline;
      this.#alarm?.set(timer.deadline);
    }
  }

  /** Does nothing to an inactive timer. */
  stop(timer: Timer): void {
    if (!timer.active) return;
    this.#unlink(timer);
    this.#size--;
    if (this.#size === 0 && this.#target < 0) this.#arm();
  }

  /**
   * Fires what is due. A timer started meanwhile fires in the next `advance` at the earliest; called from an owner
   * it does nothing.
   * @throws what an owner threw (AggregateError for several), after all others have fired
   */
  advance(): void {
    if (this.#target >= 0) return;
    const cursor = this.#cursorHigh * HALF + this.#cursorLow;
    const target = Math.max(cursor, Math.floor(this.#clock.now() - this.#origin));
    const errors: unknown[] = [];
    this.#target = target;
    for (let tick = this.#nextTick(); tick <= target; tick = this.#nextTick()) {
      this.#moveTo(tick);
      this.#fire(this.#heads[this.#cursorLow & (SLOTS - 1)]!, errors);
    }
    this.#moveTo(target);
    this.#target = -1;
    this.#replace(FRESH);
    this.#arm();
    if (errors.length === 1) throw errors[0];
    if (errors.length > 1) throw new AggregateError(errors, `${errors.length} timer owners failed`);
  }

  /**
   * When `advance` has something to do next, in milliseconds of the clock; undefined when no timer is active. Never
   * later than the earliest deadline; earlier only when the timer that was the earliest has been stopped.
   */
  nextDeadline(): number | undefined {
    if (this.#size === 0) return undefined;
    const tick = this.#nextTick();
    return this.#origin + (this.#occupied[LEVELS] === 0 ? tick : Math.min(tick, this.#earliest[FRESH]!));
  }

  #arm(): void {
    const next = this.nextDeadline();
    if (next !== undefined) this.#alarm?.set(next);
    else if (this.#alarmAt !== Number.POSITIVE_INFINITY) this.#alarm?.clear();
    this.#alarmAt = next ?? Number.POSITIVE_INFINITY;
  }

  #fire(head: Timer, errors: unknown[]): void {
    while (head.next !== head) {
      const timer = head.next;
      this.#unlink(timer);
      this.#size--;
      try {
        timer.owner.onTimer(timer);
      } catch (error) {
        errors.push(error);
      }
    }
  }

  #nextTick(): number {
    for (let level = 0; level < LEVELS; level++) {
      const bits = this.#occupied[level]!;
      if (bits !== 0) return this.#earliest[level * SLOTS + 31 - Math.clz32(bits & -bits)]!;
    }
    return Number.POSITIVE_INFINITY;
  }

  /** No timer may be due before `tick`. What stands in the slot that the cursor enters goes to lower levels. */
  #moveTo(tick: number): void {
    const entered = this.#slotOf(tick);
    this.#cursorHigh = Math.floor(tick / HALF);
    this.#cursorLow = tick - this.#cursorHigh * HALF;
    if (entered >= SLOTS) this.#replace(entered);
  }

  #replace(index: number): void {
    const head = this.#heads[index]!;
    while (head.next !== head) {
      const timer = head.next;
      const tick = timer.deadline - this.#origin;
      this.#unlink(timer);
      this.#append(timer, this.#slotOf(tick), tick);
    }
  }

  #slotOf(tick: number): number {
    const high = Math.floor(tick / HALF);
    let half = tick - high * HALF;
    let differing = half ^ this.#cursorLow;
    let below = 0;
    if (high !== this.#cursorHigh) {
      half = high;
      differing = high ^ this.#cursorHigh;
      below = HALF_LEVELS;
    }
    const level = differing === 0 ? 0 : ((31 - Math.clz32(differing)) / DIGIT_BITS) | 0;
    return (below + level) * SLOTS + ((half >>> (level * DIGIT_BITS)) & (SLOTS - 1));
  }

  #append(timer: Timer, index: number, tick: number): void {
    const head = this.#heads[index]!;
    if (head.next === head) {
      this.#occupied[index >>> DIGIT_BITS]! |= 1 << (index & (SLOTS - 1));
      this.#earliest[index] = tick;
    } else if (tick < this.#earliest[index]!) {
      this.#earliest[index] = tick;
    }
    timer.previous = head.previous;
    timer.next = head;
    head.previous.next = timer;
    head.previous = timer;
  }

  #unlink(timer: Timer): void {
    const { next, previous } = timer;
    previous.next = next;
    next.previous = previous;
    timer.next = timer;
    timer.previous = timer;
    // the only one of its ring: both neighbours were the head
    if (next === previous) this.#occupied[next.kind >>> DIGIT_BITS]! &= ~(1 << (next.kind & (SLOTS - 1)));
  }
}
