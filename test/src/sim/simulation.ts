import { Dispatcher } from '@trunkline/dispatcher';
import type { TrunklineError } from '@trunkline/proto';
import type { EndEvent, GapEvent, StatusEvent } from '@trunkline/subscriber/core';
import { type Checker, makeCheckers, messagesOf, type Watched, WireBook } from './checkers/index.js';
import { SimDispatcher } from './dispatcher-part.js';
import { FaultMaker, type Faulty } from './faults.js';
import type { Handle, SeenMessage, Segment } from './handle.js';
import { Ledgers } from './ledger.js';
import { SimMember } from './member.js';
import { Network, type Tap, type Wire } from './network.js';
import { patch } from './patch.js';
import type { ProviderWorld, Run } from './provider-part.js';
import { QueueSimulation } from './queues/simulation.js';
import { type Body, DISPATCHER, makeScenario, type Scenario, STRANGER } from './scenario.js';
import type { SubscriberWorld } from './subscriber-part.js';
import { type SimProcess, Violation, World } from './world.js';

/** Longest that everything may take to be well again after the last fault, ms of virtual time. */
const CONVERGE_WITHIN = 30_000;
/** Time without faults before everything comes to its end, ms of virtual time. */
const PEACE = 2000;
/** Steps of the dispatcher between two looks at what is dear to look at. */
const LOOK_EVERY = 8;

export interface Outcome {
  readonly seed: number;
  readonly failure: unknown;
  readonly events: number;
  /** Virtual ms. */
  readonly time: number;
  readonly fingerprint: string;
  readonly messages: number;
}

/** One run of the whole system with one seed: faults, then peace, then nothing. */
export class Simulation implements Watched, ProviderWorld, SubscriberWorld, Faulty<SimMember>, Tap {
  readonly world: World;
  readonly scenario: Scenario;
  readonly network: Network;
  readonly ledgers: Ledgers;
  readonly handles = new Set<Handle>();
  readonly runs = new Set<Run>();
  readonly calls = { made: 0, answered: 0, failed: 0 };
  readonly codes: readonly number[];
  readonly members: SimMember[];
  readonly dispatching: SimDispatcher;
  reloads = 0;
  calm = false;
  silent = false;
  private readonly book = new WireBook();
  private readonly checkers: readonly Checker[];
  private lastRun = 0;
  private lastHandle = 0;
  private messages = 0;
  private steps = 0;

  constructor(readonly seed: number) {
    this.world = new World(seed);
    this.ledgers = new Ledgers(this.world.clock);
    this.scenario = makeScenario(seed);
    this.network = new Network(this.world, this.scenario.network, this);
    this.dispatching = new SimDispatcher(this.world, this.network, this.scenario, () => this.dispatcherStarted());
    this.members = this.scenario.processes.map((plan) => new SimMember(plan, this, this.network));
    this.codes = [...new Set(this.scenario.processes.flatMap(({ codes }) => codes))];
    this.checkers = makeCheckers(this, this.book);
    this.ledgers.onEntry = (ledger, entry) => this.tell((checker) => checker.arrived?.(ledger, entry));
    this.ledgers.onEnd = (ledger, ending) => {
      this.tell((checker) => checker.streamEnded?.(ledger, ending));
    };
    this.world.afterStep = (process) => this.afterStep(process);
  }

  get dispatcher(): Dispatcher | undefined {
    return this.dispatching.dispatcher;
  }

  get awakeSince(): number {
    return this.dispatching.process?.awakeSince ?? 0;
  }

  get dispatcherProcess(): SimProcess | undefined {
    return this.dispatching.process;
  }

  // ---- the run ----

  async run(print?: (line: string) => void): Promise<Outcome> {
    this.world.print = print;
    this.world.dear = this.scenario.dear;
    const unwatch = this.ledgers.watch();
    const cheap = this.spendTime();
    // stacks of errors that nobody looks at cost more than the errors; a replay has them
    const { stackTraceLimit } = Error;
    if (print === undefined) Error.stackTraceLimit = 4;
    const unhandled = (reason: unknown) => this.world.fail(reason);
    process.on('unhandledRejection', unhandled);
    try {
      await this.phases();
      await new Promise((resolve) => setImmediate(resolve));
    } catch (error) {
      this.world.fail(error);
    } finally {
      process.off('unhandledRejection', unhandled);
      cheap();
      unwatch();
      Error.stackTraceLimit = stackTraceLimit;
    }
    const { events, now, fingerprint, failure } = this.world;
    return { seed: this.seed, failure, events, time: now, fingerprint, messages: this.messages };
  }

  /** The dispatcher takes its time where that is part of the scenario. Returns the way back. */
  private spendTime(): () => void {
    const { world } = this;
    const data = patch(Dispatcher, 'data', (_self, original, args) => {
      world.spend(Number(args[4]));
      return original(...args);
    });
    const control = patch(Dispatcher, 'control', (_self, original, args) => {
      world.spend(1);
      return original(...args);
    });
    return () => {
      control();
      data();
    };
  }

  private async phases(): Promise<void> {
    const { world, scenario, dispatching } = this;
    dispatching.start();
    for (const member of this.members) world.later(world.dice.between(0, 300), () => member.start());
    await world.run(world.now + 1000);
    const faults = new FaultMaker(this);
    await world.run(world.now + scenario.faultMs);
    world.trace('peace');
    this.calm = true;
    faults.stop();
    await this.converge('after the faults');
    if (scenario.blackout) await this.blackout();
    // what comes in peace is accounted for to the last response
    await world.run(world.now + PEACE);
    await this.quiet();
    await this.leave();
  }

  private async converge(when: string): Promise<void> {
    const well = await this.world.until(CONVERGE_WITHIN, 250, () => this.disorder() === undefined);
    if (!well) throw new Violation('convergence', '11', `${when}: ${this.disorder()}`);
    this.tell((checker) => checker.converged?.());
    this.world.trace('converged');
  }

  /** What is not as it should be yet. */
  private disorder(): string | undefined {
    const { dispatcher, dispatching } = this;
    if (!dispatching.alive || dispatcher === undefined) return 'no dispatcher';
    if (dispatcher.peers.size !== this.members.length) {
      return `${dispatcher.peers.size} sessions of ${this.members.length}`;
    }
    for (const handle of this.handles) {
      const { state } = handle.subscription;
      if (state !== 'live') return `${handle} is ${state}`;
    }
    for (const stream of dispatcher.registry.allStreams()) {
      if (stream.members === 0) return `${stream.code} lingers`;
      const slow = stream.upstreams.find(({ state }) => state !== 'live');
      if (slow !== undefined) return `${stream.code}: upstream ${slow.state}`;
    }
    const served = new Set<string>();
    for (const { accepted, code, text } of this.runs) {
      if (!accepted) return `${code} ${text} is not accepted yet`;
      served.add(`${code} ${text}`);
    }
    const wanted = new Set([...this.handles].map(({ options }) => `${options.code} ${options.text}`));
    if (dispatcher.registry.streamCount !== wanted.size) {
      return `${dispatcher.registry.streamCount} streams, ${wanted.size} wanted`;
    }
    for (const identity of wanted) if (!served.has(identity)) return `${identity} is not served`;
    return undefined;
  }

  /** All providers go away and come back (rule 7). */
  private async blackout(): Promise<void> {
    const { world } = this;
    const providers = this.members.filter(({ plan }) => plan.codes.length > 0 && !plan.subscribes);
    world.trace('blackout');
    for (const provider of providers) provider.crash();
    await world.run(world.now + 12_000);
    const mutual = this.members.some(({ plan }) => plan.codes.length > 0 && plan.subscribes);
    if (!mutual) this.tell((checker) => checker.dark?.());
    for (const provider of providers) provider.start();
    await this.converge('after the blackout');
  }

  private async quiet(): Promise<void> {
    const { world } = this;
    world.trace('silence');
    this.silent = true;
    const still = () => [...this.handles].every(({ running }) => running === 0) && !this.waiting();
    let turns = 0;
    // handlers and outboxes are empty for a while: nothing is under way
    const done = await world.until(CONVERGE_WITHIN, 250, () => {
      turns = still() ? turns + 1 : 0;
      return turns > 8;
    });
    if (!done) throw new Violation('convergence', 'Flow', `still busy: ${this.waiting() ?? 'handlers run'}`);
    await this.converge('in silence');
    this.tell((checker) => checker.quiet?.(this.dispatcher!));
  }

  private waiting(): string | undefined {
    for (const { name, outbox } of this.dispatcher!.peers.values()) if (outbox.waiting) return `outbox of ${name}`;
    return undefined;
  }

  private async leave(): Promise<void> {
    const { world } = this;
    world.trace('all leave');
    for (const { subscriber } of this.members) {
      if (subscriber === undefined) continue;
      for (const handle of [...subscriber.handles]) if (world.dice.chance(0.5)) subscriber.unsubscribe(handle);
      for (const handle of subscriber.handles) handle.left = true;
      subscriber.client.close().catch((error) => world.fail(error));
    }
    await world.run(world.now + 5000);
    const { made, answered, failed } = this.calls;
    this.tell((checker) => checker.empty?.(this.dispatcher!));
    if (made < answered + failed) throw new Violation('ends', '10', `${made} calls, ${answered + failed} settled`);
  }

  // ---- what happens ----

  nextRun(): number {
    return ++this.lastRun;
  }

  nextHandle(): number {
    return ++this.lastHandle;
  }

  /** What a checker finds stops the run, wherever in the code under test it was found. */
  private tell(call: (checker: Checker) => void): void {
    try {
      for (const checker of this.checkers) call(checker);
    } catch (error) {
      this.world.fail(error);
    }
  }

  private afterStep(process: SimProcess): void {
    const { dispatcher } = this;
    if (process !== this.dispatching.process || dispatcher === undefined) return;
    const streams = [...dispatcher.registry.allStreams()];
    this.ledgers.look(streams);
    this.tell((checker) => checker.dispatcherStep?.(dispatcher, streams));
    if (++this.steps % LOOK_EVERY === 0) this.tell((checker) => checker.dispatcherLook?.(dispatcher, streams));
  }

  private dispatcherStarted(): void {
    this.tell((checker) => checker.dispatcherStarted?.());
  }

  reload(configuration: Scenario['configuration']): void {
    this.reloads++;
    this.dispatching.reload(configuration);
  }

  forgotten(member: SimMember): void {
    this.tell((checker) => checker.forgotten?.(member.provider?.runs ?? []));
  }

  sent(wire: Wire, toAcceptor: boolean, batch: Uint8Array): void {
    const sender = toAcceptor ? wire.dialler : wire.acceptor;
    if (sender.name !== DISPATCHER || wire.dialler.name === STRANGER) return;
    messagesOf(batch, (message) => {
      this.tell((checker) => checker.sent?.(wire, message));
      this.book.sent(wire, message, this.world.now, this.world.stepBegan);
    });
  }

  delivered(wire: Wire, toAcceptor: boolean, batch: Uint8Array): void {
    const receiver = toAcceptor ? wire.acceptor : wire.dialler;
    if (receiver.name !== DISPATCHER || wire.dialler.name === STRANGER) return;
    messagesOf(batch, (message) => {
      this.tell((checker) => checker.received?.(wire, message));
      this.book.received(wire, message, this.world.now);
    });
  }

  damaged(wire: Wire, toAcceptor: boolean): void {
    this.tell((checker) => checker.damaged?.(wire, toAcceptor));
    for (const handle of this.handles) {
      if (handle.owner === wire.dialler.name && handle.segment !== undefined) handle.segment.damaged = true;
    }
  }

  /** Whether the process's connection lost or doubled something since its session began. */
  private isDamaged(handle: Handle): boolean {
    const link = this.members.find(({ name }) => name === handle.owner)?.connection?.session?.link;
    return (link as { wire?: Wire } | undefined)?.wire?.damagedAt !== undefined;
  }

  accepted(handle: Handle, segment: Segment): void {
    this.world.trace(`accepted #${handle.id} at ${segment.joined} of ${segment.generation}`);
    segment.damaged = this.isDamaged(handle);
    this.tell((checker) => checker.accepted?.(handle, segment));
  }

  message(handle: Handle, segment: Segment, seen: SeenMessage): void {
    this.messages++;
    this.world.trace(
      `message #${handle.id} ${seen.sequence}${seen.snapshot ? ' kept' : ''} ${seen.body.s}.${seen.body.n}`,
    );
    this.tell((checker) => checker.message?.(handle, segment, seen));
  }

  status(handle: Handle, status: StatusEvent): void {
    this.world.trace(`status #${handle.id} ${status.state} ${status.reason}`);
    this.tell((checker) => checker.status?.(handle, status));
  }

  gap(handle: Handle, gap: GapEvent): void {
    this.world.trace(`gap #${handle.id} ${gap.count} ${gap.first}-${gap.last} ${gap.reason}`);
    this.tell((checker) => checker.gap?.(handle, gap));
  }

  end(handle: Handle, end: EndEvent): void {
    this.world.trace(`end #${handle.id} ${end.code} ${end.message}`);
    this.handles.delete(handle);
    this.tell((checker) => checker.end?.(handle, end));
  }

  runStarted(run: Run): void {
    const { id, code, text, provider, subscription } = run;
    this.world.trace(`run ${id} at ${provider.name}: ${code} ${text} of ${subscription.generation}`);
    this.tell((checker) => checker.runStarted?.(run));
  }

  runOver(run: Run): void {
    this.world.trace(`run ${run.id} over`);
    this.tell((checker) => checker.runOver?.(run));
  }

  callSettled(code: number, text: string, error: TrunklineError | undefined, body: Body | undefined): void {
    this.world.trace(`request ${code} ${error?.code ?? 'answered'}`);
    this.tell((checker) => checker.callSettled?.(code, text, error?.code, body));
  }
}

/** Of every so many seeds one runs queues too, which have a world of their own. */
const QUEUES_EVERY = 3;

export async function simulate(seed: number, print?: (line: string) => void): Promise<Outcome> {
  const outcome = await new Simulation(seed).run(print);
  if (seed % QUEUES_EVERY !== 0 || outcome.failure !== undefined) return outcome;
  const queues = await simulateQueues(seed, print);
  const { failure, events, time, fingerprint, messages } = queues;
  return {
    seed,
    failure,
    events: outcome.events + events,
    time: outcome.time + time,
    fingerprint: `${outcome.fingerprint}-${fingerprint}`,
    messages: outcome.messages + messages,
  };
}

export async function simulateQueues(seed: number, print?: (line: string) => void): Promise<Outcome> {
  const simulation = new QueueSimulation(seed);
  await simulation.run(print);
  const { world, checkers } = simulation;
  const { events, now, fingerprint, failure } = world;
  return { seed, failure, events, time: now, fingerprint, messages: checkers.delivered };
}
