import {
  type Clock,
  defaultSessionLimits,
  Flusher,
  type Identity,
  type SessionContext,
  type SessionLimits,
  Timers,
  Turns,
} from '@trunkline/proto';
import { SeededRandom } from '../support/memory-link.js';

/** A broken rule, with what is needed to see it again. */
export class Violation extends Error {
  constructor(
    readonly checker: string,
    readonly rule: string,
    readonly what: string,
  ) {
    super(`${checker} (rule ${rule}): ${what}`);
  }
}

/** Repeatable choices. */
export class Dice extends SeededRandom {
  /** An integer, `least`..`most`. */
  between(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.next() * items.length)]!;
  }

  /** Each item with the given chance, at least one of them. */
  some<T>(items: readonly T[], probability: number): T[] {
    const chosen = items.filter(() => this.chance(probability));
    return chosen.length > 0 ? chosen : [this.pick(items)];
  }
}

interface Event {
  readonly at: number;
  readonly order: number;
  readonly process: SimProcess | undefined;
  readonly run: () => void;
}

/** Turns of the microtask queue after each event: the longest chain of promises in the SDKs is shorter. */
const TURNS = 6;
/** How often messages begin to be dear. */
const DEAR = 1 / 200;

/** Time, and all that happens in it, one event after the other. */
export class World {
  now = 1000;
  events = 0;
  /** The first thing that went wrong; the run stops at it. */
  failure: unknown;
  /** Printed when somebody replays a seed. */
  print: ((line: string) => void) | undefined;
  afterStep: (process: SimProcess) => void = () => {};
  readonly clock: Clock = { now: () => this.now };
  readonly dice: Dice;
  readonly processes = new Set<SimProcess>();
  /** Whether handling messages takes time, now and then. */
  dear = false;
  private dearLeft = 0;
  /** When the event began that is handled now: time may pass within it, before a checker sees what happened. */
  stepBegan = 0;
  private readonly heap: Event[] = [];
  private order = 0;
  private deferred: (() => void)[] = [];
  private hash = 0x811c9dc5;

  constructor(readonly seed: number) {
    this.dice = new Dice(Math.imul(seed, 0x9e3779b1) ^ 0x5bd1e995);
  }

  /** What happened so far, as one number: equal for equal seeds. */
  get fingerprint(): string {
    return (this.hash >>> 0).toString(16).padStart(8, '0');
  }

  trace(line: string): void {
    let { hash } = this;
    for (let index = 0; index < line.length; index++) hash = Math.imul(hash ^ line.charCodeAt(index), 0x01000193);
    this.hash = Math.imul(hash ^ this.now, 0x01000193);
    this.print?.(`${this.now.toFixed(0).padStart(7)} ${line}`);
  }

  fail(error: unknown): void {
    this.failure ??= error;
  }

  /** Messages are being handled: where that is dear it is for some of them in a row, as it is with filters. */
  spend(messages: number): void {
    if (!this.dear) return;
    for (let count = 0; count < messages; count++) {
      if (this.dearLeft === 0) {
        if (this.dice.chance(DEAR)) this.dearLeft = this.dice.between(5, 25);
        continue;
      }
      this.dearLeft--;
      this.now += this.dice.between(2, 25);
      // nobody could do anything meanwhile
      for (const process of this.processes) process.awakeSince = this.now;
    }
  }

  /** Runs something after `delay` ms; not at all if the process it belongs to is gone by then. */
  later(delay: number, run: () => void, process?: SimProcess): void {
    this.push({ at: this.now + delay, order: this.order++, process, run });
  }

  defer(run: () => void): void {
    this.deferred.push(run);
  }

  /** Moves time on by at most `limit` ms, and stops earlier when `done` says so, asked every `every` ms. */
  async until(limit: number, every: number, done: () => boolean): Promise<boolean> {
    const end = this.now + limit;
    while (this.now < end) {
      await this.run(Math.min(end, this.now + every));
      if (done()) return true;
    }
    return false;
  }

  async run(until: number): Promise<void> {
    while (this.failure === undefined) {
      const event = this.heap[0];
      let process: SimProcess | undefined;
      let due = event?.at ?? Number.POSITIVE_INFINITY;
      for (const each of this.processes) {
        if (each.due < due && !each.paused) {
          due = each.due;
          process = each;
        }
      }
      if (due > until) break;
      this.now = Math.max(this.now, due);
      this.events++;
      await (process === undefined ? this.happen(this.pop()) : this.step(process, () => process.advance()));
    }
    if (this.failure !== undefined) throw this.failure;
    this.now = until;
  }

  private happen({ process, run }: Event): Promise<void> | void {
    if (process !== undefined && !process.alive) return;
    if (process?.paused) {
      process.backlog.push(run);
      return;
    }
    return this.step(process, run);
  }

  private async step(process: SimProcess | undefined, run: () => void): Promise<void> {
    this.stepBegan = this.now;
    try {
      run();
      do {
        this.flush();
        for (let turn = 0; turn < TURNS; turn++) await undefined;
      } while (this.deferred.length > 0);
      if (process?.alive) this.afterStep(process);
    } catch (error) {
      this.fail(error);
    }
  }

  private flush(): void {
    while (this.deferred.length > 0) {
      const runs = this.deferred;
      this.deferred = [];
      for (const run of runs) run();
    }
  }

  // ---- a binary heap by time, then by order ----

  private push(event: Event): void {
    const { heap } = this;
    let at = heap.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!earlier(event, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = event;
  }

  private pop(): Event {
    const { heap } = this;
    const top = heap[0]!;
    const last = heap.pop()!;
    const { length } = heap;
    let at = 0;
    for (let child = 1; child < length; child = 2 * at + 1) {
      if (child + 1 < length && earlier(heap[child + 1]!, heap[child]!)) child++;
      if (!earlier(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    if (length > 0) heap[at] = last;
    return top;
  }
}

function earlier(left: Event, right: Event): boolean {
  return left.at === right.at ? left.order < right.order : left.at < right.at;
}

/** One life of one process: what a crash takes away is made anew for the next. */
export class SimProcess {
  alive = true;
  paused = false;
  /** When it was last resumed. */
  awakeSince = 0;
  /** When its timers want to be looked at. */
  due = Number.POSITIVE_INFINITY;
  readonly timers: Timers;
  readonly context: SessionContext;
  /** What reached it while it was paused. */
  readonly backlog: (() => void)[] = [];
  /** Called when it dies, to take its connections with it. */
  onDeath: () => void = () => {};

  constructor(
    readonly world: World,
    readonly name: string,
    limits: Partial<SessionLimits>,
  ) {
    this.timers = new Timers(world.clock, {
      set: (deadline) => {
        this.due = deadline;
      },
      clear: () => {
        this.due = Number.POSITIVE_INFINITY;
      },
    });
    const random = new Dice(Math.floor(world.dice.next() * 2 ** 32));
    const identity: Identity = { instance: random.bytes(16), name };
    this.context = {
      clock: world.clock,
      timers: this.timers,
      random,
      flusher: new Flusher((run) =>
        world.defer(() => {
          if (this.alive) run();
        }),
      ),
      turns: new Turns(world.clock, this.timers),
      identity,
      limits: { ...defaultSessionLimits, ...limits },
    };
    world.processes.add(this);
  }

  advance(): void {
    this.due = Number.POSITIVE_INFINITY;
    this.timers.advance();
  }

  /** SIGSTOP: nothing is received and no timer fires until `resume`. */
  pause(): void {
    this.paused = true;
  }

  resume(): void {
    if (!this.paused || !this.alive) return;
    this.paused = false;
    this.awakeSince = this.world.now;
    for (const run of this.backlog.splice(0)) this.world.later(0, run, this);
  }

  /** kill -9 */
  kill(): void {
    if (!this.alive) return;
    this.alive = false;
    this.world.processes.delete(this);
    this.onDeath();
  }
}
