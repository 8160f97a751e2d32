import { type Configuration, Dispatcher, type Handlers } from '@trunkline/dispatcher';
import type { Store } from '@trunkline/dispatcher/stores';
import type { Log } from '@trunkline/proto';
import type { Network } from './network.js';
import { DISPATCHER, limits, type Scenario } from './scenario.js';
import { SimProcess, Violation, type World } from './world.js';

export const noHandlers: Handlers = { send: new Map(), return: new Map(), probe: new Map(), application: new Map() };

/** Where the dispatcher keeps its queues, through all its lives. */
export interface SimDisk {
  /** The store of a new process. */
  open(): Store;
  /** The process is gone without a word. */
  crash(): void;
}

/** 1.1.2026, when the virtual clock began. */
const DATE = 1_767_225_600_000;

/** The dispatcher's process, through all its lives. */
export class SimDispatcher {
  process: SimProcess | undefined;
  dispatcher: Dispatcher | undefined;
  /** A store that fails is logged as an error: that is expected from now on. */
  tolerant = false;

  constructor(
    private readonly world: World,
    private readonly network: Network,
    private readonly scenario: Scenario,
    private readonly onStart: () => void,
    private readonly disk?: SimDisk,
  ) {}

  get alive(): boolean {
    return this.process?.alive === true;
  }

  start(): void {
    if (this.alive) return;
    const { world } = this;
    world.trace('start dispatcher');
    const { configuration } = this.scenario;
    const { receiveWindow } = configuration.session;
    const process = new SimProcess(world, DISPATCHER, { ...limits, receiveWindow });
    const transport = this.network.transport(process);
    this.process = process;
    this.dispatcher = new Dispatcher({
      context: process.context,
      transport,
      configuration,
      handlers: noHandlers,
      log: this.log(),
      date: () => DATE + world.now,
      ...(this.disk === undefined ? {} : { store: this.disk.open() }),
    });
    this.onStart();
    this.dispatcher.start().catch((error) => world.fail(error));
  }

  /** Nothing that a dispatcher logs as an error may happen here. */
  private log(): Log {
    const { world } = this;
    const ignore = () => {};
    return {
      debug: ignore,
      info: ignore,
      warn: ignore,
      error: (fields, message) => {
        if (!this.tolerant) world.fail(new Error(`${message}: ${JSON.stringify(fields)}`));
      },
    };
  }

  crash(): void {
    if (!this.alive) return;
    this.world.trace('crash dispatcher');
    this.process!.kill();
    this.disk?.crash();
  }

  /** Stops in an orderly way; `done` when the process has ended. */
  stop(done: () => void): void {
    if (!this.alive) return;
    this.world.trace('stop dispatcher');
    const process = this.process!;
    const dispatcher = this.dispatcher!;
    dispatcher.stop().then(
      () => {
        if (!process.alive) return;
        const { size } = process.timers;
        const sessions = dispatcher.peers.size;
        if (size + sessions > 0) {
          this.world.fail(new Violation('nothing left', '12', `${size} timers and ${sessions} sessions after stop`));
        }
        process.kill();
        done();
      },
      (error) => this.world.fail(error),
    );
  }

  reload(configuration: Configuration): void {
    if (!this.alive) return;
    this.world.trace(`reload ${configuration.services.length} services`);
    const { dispatcher, process } = this;
    const run = () => {
      // the next life begins with the table of the scenario
      if (!dispatcher!.core.stopping) dispatcher!.reload(configuration, noHandlers);
    };
    this.world.later(0, run, process);
  }
}
