import { Connection, silentLog, type TrunklineError } from '@trunkline/proto';
import { Provider } from '@trunkline/publisher/core';
import { Client, type Consumption, type QueueMessage } from '@trunkline/subscriber/core';
import type { Network } from '../network.js';
import { ADDRESS, limits } from '../scenario.js';
import { SimProcess, Violation, type World } from '../world.js';
import { nameOf, type QueueCheckers } from './checkers.js';
import { GROUPS, type GroupPlan, keyOf, ORDERS, RING, TASKS } from './scenario.js';

export interface QueueUserWorld {
  readonly world: World;
  readonly checkers: QueueCheckers;
  /** No more publishes; everything is acknowledged. */
  readonly calm: boolean;
  nextId(): number;
}

/** What may become of an ack in a world with faults. */
const EXPECTED = ['NOT_HELD', 'DISCONNECTED', 'CLOSED'];
const REFUSALS = ['STORE_FULL', 'STORE_FAILED', 'QUEUE_FULL'];
const UNKNOWN = ['DISCONNECTED', 'TIMEOUT', 'LIMIT_EXCEEDED'];

/** A process that publishes and consumes over one connection, at random, through all its lives. */
export class QueueUser {
  readonly plan = { codes: [] as readonly number[], receiveWindow: 0 };
  readonly withdrawn = new Set<number>();
  readonly provider = undefined;
  process: SimProcess | undefined;
  connection: Connection | undefined;
  client: Client | undefined;
  publisher: Provider | undefined;
  readonly consumptions = new Map<GroupPlan, Consumption>();

  constructor(
    readonly name: string,
    private readonly sim: QueueUserWorld,
    private readonly network: Network,
  ) {}

  get up(): boolean {
    return this.process?.alive === true && !this.process.paused;
  }

  get busy(): string | undefined {
    if (this.publisher !== undefined && this.publisher.unconfirmed > 0) {
      return `${this.name} waits for ${this.publisher.unconfirmed} confirmations`;
    }
    for (const [plan, { state }] of this.consumptions) {
      if (state !== 'active') return `${this.name} ${nameOf(plan)} is ${state}`;
    }
    return undefined;
  }

  start(): void {
    if (this.process?.alive) return;
    const { world } = this.sim;
    world.trace(`start ${this.name}`);
    const receiveWindow = world.dice.pick([600, 4000, 60_000]);
    const process = new SimProcess(world, this.name, { ...limits, receiveWindow });
    const transport = this.network.transport(process);
    const { context } = process;
    this.process = process;
    this.connection = new Connection({ context, transport, addresses: [ADDRESS], attempt: 300, log: silentLog });
    this.client = new Client(this.connection);
    this.publisher = new Provider();
    this.publisher.attach(this.connection);
    this.consumptions.clear();
    for (const plan of world.dice.some(GROUPS, 0.5)) this.consume(plan);
    this.act();
  }

  private act(): void {
    const { world } = this.sim;
    const { dice } = world;
    world.later(
      dice.between(30, 500),
      () => {
        if (this.sim.calm) return;
        const count = dice.chance(0.1) ? dice.between(10, 60) : dice.between(1, 5);
        const code = dice.pick([ORDERS, ORDERS, TASKS, RING]);
        for (let index = 0; index < count; index++) this.publish(code);
        const roll = dice.next();
        if (roll < 0.05) this.consume(dice.pick(GROUPS));
        else if (roll < 0.1) this.stopOne();
        this.act();
      },
      this.process,
    );
  }

  private publish(code: number): void {
    const { sim } = this;
    const { checkers, world } = sim;
    const id = sim.nextId();
    const published = checkers.publish(id, code);
    const timeoutMs = world.dice.chance(0.1) ? world.dice.between(100, 2000) : 300_000;
    const { process } = this;
    this.publisher!.publish(code, { id }, { key: keyOf(id), timeoutMs }).then(
      (sequence) => {
        if (!process?.alive) return;
        world.trace(`published ${id} as ${sequence}`);
        checkers.confirm(published, sequence);
      },
      (error: TrunklineError) => {
        world.trace(`publish ${id} ${error.code}`);
        if (!REFUSALS.includes(error.code) && !UNKNOWN.includes(error.code) && process?.alive) world.fail(error);
      },
    );
  }

  consume(plan: GroupPlan): void {
    if (this.consumptions.has(plan)) return;
    const { world, checkers } = this.sim;
    const { dice } = world;
    const { code, name: group, filter, start } = plan;
    const window = dice.pick([1, 3, 20]);
    const consumption = this.client!.consume(code, { group, filter, window, start, ack: 'manual' }, (message) => {
      this.message(plan, message);
    });
    this.consumptions.set(plan, consumption);
    consumption.on('state', (state) => {
      world.trace(`${this.name} ${nameOf(plan)} ${state}`);
      if (state === 'active') checkers.joined.add(plan);
    });
    consumption.on('error', (error) => {
      if (!EXPECTED.includes(error.code)) world.fail(error);
    });
    consumption.on('end', (error) => world.fail(error));
  }

  private stopOne(): void {
    const plans = [...this.consumptions.keys()];
    if (plans.length === 0) return;
    const plan = this.sim.world.dice.pick(plans);
    const consumption = this.consumptions.get(plan)!;
    this.consumptions.delete(plan);
    consumption.close().catch((error) => this.sim.world.fail(error));
  }

  private message(plan: GroupPlan, message: QueueMessage): void {
    const { checkers, calm, world } = this.sim;
    const { dice } = world;
    const { id } = message.json() as { id: number };
    const { sequence, deliveries } = message;
    world.trace(`${this.name} ${nameOf(plan)} got ${sequence} (${id}) ${deliveries}`);
    checkers.got(plan, sequence, id, message.attrs);
    const roll = calm ? 0 : dice.next();
    if (roll < 0.6) this.soon(calm ? 0 : dice.between(0, 200), () => this.ack(plan, message));
    else if (roll < 0.75) {
      message.nack({ delayMs: dice.chance(0.5) ? 0 : dice.between(1, 800), reason: 'no' }).catch(this.expected);
    } else if (roll < 0.83) {
      message.extend().catch(this.expected);
      this.soon(dice.between(500, 2500), () => this.ack(plan, message));
    } else if (roll < 0.92) this.soon(dice.between(800, 4000), () => this.ack(plan, message));
  }

  private soon(delay: number, run: () => void): void {
    if (delay === 0) run();
    else this.sim.world.later(delay, run, this.process);
  }

  private ack(plan: GroupPlan, message: QueueMessage): void {
    const { checkers, world } = this.sim;
    const { sequence } = message;
    checkers.handled(plan, sequence);
    const { process } = this;
    message.ack().then(() => {
      if (!process?.alive) return;
      world.trace(`${this.name} ${nameOf(plan)} acked ${sequence}`);
      checkers.ackStored(plan, sequence);
    }, this.expected);
  }

  private readonly expected = (error: TrunklineError) => {
    if (!EXPECTED.includes(error.code)) this.sim.world.fail(error);
  };

  /** Leaves in an orderly way; `done` when the process has ended. */
  leave(done: () => void): void {
    const { process, sim, name } = this;
    if (process === undefined || !this.up) return;
    sim.world.trace(`leave ${name}`);
    Promise.all([this.client!.close(), this.publisher!.close()]).then(
      () => {
        const { size } = process.timers;
        if (size > 0) sim.world.fail(new Violation('nothing left', '12', `${name}: ${size} timers after close`));
        if (process.alive) this.crash();
        done();
      },
      (error) => sim.world.fail(error),
    );
  }

  crash(): void {
    const { process, sim, name } = this;
    if (process === undefined || !process.alive) return;
    sim.world.trace(`crash ${name}`);
    process.kill();
  }
}
