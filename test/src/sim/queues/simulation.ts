import { SimulatedDisk } from '../../support/simulated-store.js';
import { messagesOf } from '../checkers/index.js';
import { SimDispatcher } from '../dispatcher-part.js';
import { FaultMaker, type Faulty } from '../faults.js';
import { Network, type Tap, type Wire } from '../network.js';
import { DISPATCHER } from '../scenario.js';
import { type SimProcess, Violation, World } from '../world.js';
import { GROUPS, QueueCheckers } from './checkers.js';
import { type DiskFault, makeQueueScenario, type QueueScenario } from './scenario.js';
import { QueueUser, type QueueUserWorld } from './user.js';
import { WatchedStore } from './watched-store.js';

const CONVERGE_WITHIN = 60_000;

/** Queues under faults of processes, connections and the disk; then peace, then nothing. */
export class QueueSimulation implements Tap, QueueUserWorld, Faulty {
  readonly world: World;
  readonly scenario: QueueScenario;
  readonly network: Network;
  readonly checkers: QueueCheckers;
  readonly members: readonly QueueUser[];
  readonly dispatching: SimDispatcher;
  readonly disk: SimulatedDisk;
  calm = false;
  private lastId = 0;

  constructor(readonly seed: number) {
    this.world = new World(seed);
    this.scenario = makeQueueScenario(seed);
    this.network = new Network(this.world, this.scenario.network, this);
    this.checkers = new QueueCheckers(this.world);
    const { world, checkers, scenario } = this;
    for (const { code, options } of scenario.configuration.queues) checkers.ackTimeouts.set(code, options.ackTimeout);
    // what the disk says reaches the process that is there, when it runs
    this.disk = new SimulatedDisk(world.dice, (ms, run) => world.later(Math.ceil(ms), run, this.dispatching.process));
    this.disk.behaviour.flush = scenario.flush;
    this.dispatching = new SimDispatcher(world, this.network, scenario, () => checkers.dispatcherStarted(), {
      open: () => new WatchedStore(this.disk.attach(), checkers),
      crash: () => this.disk.crash(),
    });
    this.members = scenario.members.map((name) => new QueueUser(name, this, this.network));
    world.afterStep = (process) => this.afterStep(process);
  }

  private afterStep(process: SimProcess): void {
    const { dispatcher, process: own } = this.dispatching;
    if (process === own && dispatcher !== undefined) this.checkers.dispatcherStep(dispatcher);
  }

  nextId(): number {
    return ++this.lastId;
  }

  // ---- the run ----

  async run(print?: (line: string) => void): Promise<void> {
    const { world } = this;
    world.print = print;
    const unhandled = (reason: unknown) => world.fail(reason);
    process.on('unhandledRejection', unhandled);
    try {
      await this.phases();
      await new Promise((resolve) => setImmediate(resolve));
    } catch (error) {
      world.fail(error);
    } finally {
      process.off('unhandledRejection', unhandled);
    }
  }

  private async phases(): Promise<void> {
    const { world, scenario } = this;
    this.dispatching.start();
    for (const member of this.members) world.later(world.dice.between(0, 200), () => member.start());
    await world.run(world.now + 800);
    const faults = new FaultMaker(this);
    this.nextDiskFault();
    await world.run(world.now + scenario.faultMs);
    world.trace('peace');
    this.calm = true;
    this.healDisk();
    faults.stop();
    await this.converge();
    this.checkers.drained();
    await this.leave();
  }

  private async converge(): Promise<void> {
    const { world } = this;
    // a process that was restarted may be in no group; every group has its members now
    await world.run(world.now + 10);
    for (const member of this.members) for (const plan of GROUPS) member.consume(plan);
    const well = await world.until(CONVERGE_WITHIN, 250, () => this.disorder() === undefined);
    if (!well) throw new Violation('convergence', '§8', `${this.disorder()}`);
    world.trace('converged');
  }

  /** What is not as it should be yet. */
  private disorder(): string | undefined {
    const { dispatcher } = this.dispatching;
    if (dispatcher === undefined || !this.dispatching.alive) return 'no dispatcher';
    if (dispatcher.peers.size !== this.members.length) return `${dispatcher.peers.size} sessions`;
    for (const { busy } of this.members) if (busy !== undefined) return busy;
    for (const { queue, declaration } of dispatcher.queues.all()) {
      for (const { name, waitingCount, outstanding, position } of queue.groups.values()) {
        const open = waitingCount + outstanding;
        if (open > 0) return `${declaration.code}/${name}: ${waitingCount} wait, ${outstanding} are out`;
        if (position !== queue.last) return `${declaration.code}/${name}: at ${position} of ${queue.last}`;
      }
      if (queue.depth > 0) return `${declaration.code}: ${queue.depth} are left (F98)`;
    }
    return undefined;
  }

  private async leave(): Promise<void> {
    const { world } = this;
    world.trace('all leave');
    for (const { client, publisher } of this.members) {
      client!.close().catch((error) => world.fail(error));
      publisher!.close().catch((error) => world.fail(error));
    }
    await world.run(world.now + 5000);
    const { core, peers, queues } = this.dispatching.dispatcher!;
    let members = 0;
    for (const { queue } of queues.all()) {
      for (const group of queue.allGroups()) members += group.members.length + group.outstanding;
      members += queue.privates.size;
    }
    const left = core.lines.size + peers.size + core.filters.size + members;
    if (left > 0) throw new Violation('nothing left', '12', `${core.lines.size} lines, ${members} members are left`);
    const { size } = this.dispatching.process!.timers;
    if (size > 0) throw new Violation('nothing left', '12', `${size} timers are left`);
  }

  // ---- faults ----

  reload(): void {}

  forgotten(): void {}

  private nextDiskFault(): void {
    const { world, scenario } = this;
    if (scenario.diskFaults.length === 0) return;
    world.later(world.dice.between(300, 2500), () => {
      if (this.calm) return;
      const fault = world.dice.pick(scenario.diskFaults);
      world.trace(`fault ${fault}`);
      this.break(fault);
      world.later(world.dice.between(100, 2500), () => this.healDisk());
      this.nextDiskFault();
    });
  }

  private break(fault: DiskFault): void {
    const { disk, world } = this;
    this.dispatching.tolerant = true;
    if (fault === 'diskFull') disk.behaviour.capacity = disk.usage().bytes + world.dice.between(0, 300);
    else if (fault === 'diskFails') disk.failCommits(world.dice.between(1, 3));
    else if (fault === 'readFails') disk.failReads(world.dice.between(1, 3));
    else disk.behaviour.flush = [50, world.dice.between(100, 1500)];
  }

  private healDisk(): void {
    this.disk.behaviour.capacity = Number.POSITIVE_INFINITY;
    this.disk.behaviour.flush = this.scenario.flush;
  }

  // ---- wires ----

  sent(wire: Wire, toAcceptor: boolean, batch: Uint8Array): void {
    if (toAcceptor || wire.acceptor.name !== DISPATCHER) return;
    const { dispatcher } = this.dispatching;
    messagesOf(batch, (message) => this.checkers.sent(message, dispatcher));
  }

  delivered(wire: Wire, toAcceptor: boolean, batch: Uint8Array): void {
    if (!toAcceptor || wire.acceptor.name !== DISPATCHER) return;
    const { dispatcher } = this.dispatching;
    messagesOf(batch, (message) => this.checkers.received(message, dispatcher));
  }

  damaged(): void {}
}
