import type { Session } from '@trunkline/proto';
import { TrunklineError } from '@trunkline/proto';
import { type Handler, type Provided, Provider, type Subscription } from '@trunkline/publisher/core';
import { type Body, FINAL_CODES, keyOf, REFUSED_PARAMS } from './scenario.js';
import type { Dice, SimProcess, World } from './world.js';

/** One call of a handler, from the request to its end. */
export class Run {
  /** Responses that were taken. */
  taken = 0;
  over = false;
  accepted = false;
  /** The provider completed it. */
  ended = false;

  constructor(
    readonly id: number,
    readonly provider: ProviderPart,
    readonly subscription: Subscription,
    readonly code: number,
    readonly text: string,
  ) {}

  get session(): Session {
    return (Reflect.get(this.subscription, 'peer') as { session: Session }).session;
  }

  get line(): number {
    return Reflect.get(this.subscription, 'line') as number;
  }
}

/** Hears what happens in the handlers of providers. */
export interface RunListener {
  runStarted?(run: Run): void;
  runOver?(run: Run): void;
}

export interface ProviderWorld extends RunListener {
  readonly world: World;
  readonly runs: Set<Run>;
  nextRun(): number;
  /** No more ends, slow answers and withdrawals. */
  readonly calm: boolean;
  /** No more responses. */
  readonly silent: boolean;
}

/** Long ago enough that a request is sent again before the handler accepts it. */
const SLOWEST_ACCEPT = 900;

/** The provider role of a process: the real SDK with handlers that answer, fall silent and end at random. */
export class ProviderPart {
  readonly provider: Provider;
  readonly runs = new Set<Run>();
  readonly provided = new Map<number, Provided>();
  private readonly dice: Dice;

  constructor(
    readonly name: string,
    readonly process: SimProcess,
    private readonly sim: ProviderWorld,
    report: (error: TrunklineError) => void,
  ) {
    this.dice = sim.world.dice;
    this.provider = new Provider();
    this.provider.on('error', report);
  }

  provide(code: number): void {
    if (this.provided.has(code)) return;
    this.provided.set(code, this.provider.provide(code, this.handler));
  }

  withdraw(code: number): void {
    const provided = this.provided.get(code);
    this.provided.delete(code);
    void provided?.withdraw();
  }

  /** Forgets what it serves, as a process does that lost its memory but not its connection (rule 5). */
  forget(): void {
    for (const run of [...this.runs]) {
      const { subscription } = run;
      const finish = Reflect.get(subscription, 'finish') as (reason: TrunklineError) => void;
      finish.call(subscription, new TrunklineError('ABORTED', 'forgotten'));
    }
  }

  private readonly handler: Handler = (subscription) => {
    const { sim, dice } = this;
    const text = new TextDecoder().decode(subscription.paramsBytes);
    const run = new Run(sim.nextRun(), this, subscription, subscription.code, text);
    if (text === REFUSED_PARAMS.text) throw new TrunklineError('REFUSED', 'these params are refused');
    this.runs.add(run);
    sim.runs.add(run);
    sim.runStarted?.(run);
    subscription.signal.addEventListener('abort', () => this.over(run));
    const slow = dice.chance(0.25) ? dice.between(1, sim.calm ? 100 : SLOWEST_ACCEPT) : 0;
    if (FINAL_CODES.includes(run.code)) return this.soon(slow + dice.between(1, 50)).then(() => this.body(run));
    if (slow === 0) return this.begin(run);
    return this.soon(slow).then(() => this.begin(run));
  };

  private soon(delay: number): Promise<void> {
    return new Promise((resolve) => this.sim.world.later(delay, resolve, this.process));
  }

  private begin(run: Run): () => void {
    run.accepted = true;
    this.tick(run);
    return () => {};
  }

  private over(run: Run): void {
    if (run.over) return;
    run.over = true;
    this.runs.delete(run);
    this.sim.runs.delete(run);
    this.sim.runOver?.(run);
  }

  private tick(run: Run): void {
    const { dice } = this;
    // some are silent for longer than a probe takes
    const wait = dice.chance(0.1) ? dice.between(1000, 4000) : dice.between(60, 700);
    this.sim.world.later(wait, () => this.respond(run), this.process);
  }

  private respond(run: Run): void {
    const { dice, sim } = this;
    if (run.over) return;
    if (!sim.silent) {
      if (!sim.calm && dice.chance(0.015)) {
        this.end(run);
        return;
      }
      const burst = dice.chance(0.06) ? dice.between(5, 40) : 1;
      for (let index = 0; index < burst; index++) {
        if (this.send(run)) continue;
        if (dice.chance(0.5))
          run.subscription.drained().then(
            () => this.send(run),
            () => {},
          );
        break;
      }
    }
    this.tick(run);
  }

  private send(run: Run, final = false): boolean {
    if (run.over) return false;
    const body = this.body(run);
    const meta = { key: keyOf(body.n), tag: `t${body.n % 2}`, attrs: { v: body.v }, final };
    const taken = run.subscription.respond(body, meta);
    if (taken) run.taken++;
    return taken;
  }

  private body(run: Run): Body {
    const n = run.taken + 1;
    const { code: c, text: q, id: s } = run;
    return { p: this.name, s, n, c, q, g: run.subscription.generation, v: (n * 7) % 10 };
  }

  private end(run: Run): void {
    this.sim.world.trace(`run ${run.id} ends`);
    run.ended = true;
    if (this.dice.chance(0.5)) {
      if (!this.send(run, true)) {
        run.ended = false;
        this.tick(run);
      }
    } else run.subscription.end(this.dice.chance(0.5) ? { exit: 0 } : {});
  }
}
