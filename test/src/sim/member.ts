import { Connection, type Listener, silentLog, TrunklineError } from '@trunkline/proto';
import type { Network } from './network.js';
import { ProviderPart, type ProviderWorld } from './provider-part.js';
import { ADDRESS, limits, NOWHERE, type ProcessPlan, TOKEN } from './scenario.js';
import { SubscriberPart, type SubscriberWorld } from './subscriber-part.js';
import { SimProcess, Violation } from './world.js';

/** A process other than the dispatcher: subscriber, provider or both, through all its lives. */
export class SimMember {
  process: SimProcess | undefined;
  subscriber: SubscriberPart | undefined;
  provider: ProviderPart | undefined;
  connection: Connection | undefined;
  private listener: Listener | undefined;
  /** Codes that are withdrawn for a while. */
  readonly withdrawn = new Set<number>();

  constructor(
    readonly plan: ProcessPlan,
    private readonly sim: ProviderWorld & SubscriberWorld,
    private readonly network: Network,
  ) {}

  get name(): string {
    return this.plan.name;
  }

  get up(): boolean {
    return this.process?.alive === true && !this.process.paused;
  }

  start(): void {
    if (this.process?.alive) return;
    const { plan, sim } = this;
    sim.world.trace(`start ${plan.name}`);
    const process = new SimProcess(sim.world, plan.name, { ...limits, receiveWindow: plan.receiveWindow });
    const transport = this.network.transport(process);
    this.process = process;
    this.connection = undefined;
    if (plan.address === undefined) {
      const addresses = sim.world.dice.chance(0.2) ? [NOWHERE, ADDRESS] : [ADDRESS];
      const { context } = process;
      this.connection = new Connection({ context, transport, addresses, attempt: 300, token: TOKEN, log: silentLog });
    }
    this.subscriber = plan.subscribes ? new SubscriberPart(plan.name, process, this.connection!, sim) : undefined;
    this.provider =
      plan.codes.length > 0 ? new ProviderPart(plan.name, process, sim, (error) => this.report(error)) : undefined;
    const { provider } = this;
    if (provider === undefined) return;
    for (const code of plan.codes) if (!this.withdrawn.has(code)) provider.provide(code);
    if (this.connection !== undefined) provider.provider.attach(this.connection);
    else {
      const host = provider.provider.host(process.context);
      transport.listen(plan.address!, host).then(
        (listener) => {
          this.listener = listener;
        },
        (error) => sim.world.fail(error),
      );
    }
  }

  private report(error: TrunklineError): void {
    // a final response that found no room and whose subscription is over by then is no failure of the SDK
    if (error instanceof TrunklineError && error.code === 'REFUSED') return;
    this.sim.world.fail(error);
  }

  /** Leaves in an orderly way; `done` when the process has ended. Nothing of the SDKs may keep it alive (rule 12). */
  leave(done: () => void): void {
    const { process, subscriber, provider, sim, name } = this;
    if (process === undefined || !this.up) return;
    sim.world.trace(`leave ${name}`);
    const closed = Promise.all([subscriber?.client.close(), provider?.provider.close()]);
    for (const handle of subscriber?.handles ?? []) handle.left = true;
    closed
      .then(() => this.listener?.close())
      .then(
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
    const { process, sim } = this;
    if (process === undefined || !process.alive) return;
    sim.world.trace(`crash ${this.name}`);
    process.kill();
    this.listener = undefined;
    for (const run of this.provider?.runs ?? []) sim.runs.delete(run);
    for (const handle of this.subscriber?.handles ?? []) {
      handle.left = true;
      sim.handles.delete(handle);
    }
  }
}
