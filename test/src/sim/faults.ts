import { payload, singleMessage, Type } from '@trunkline/proto';
import type { SimDispatcher } from './dispatcher-part.js';
import type { Network } from './network.js';
import type { ProviderPart } from './provider-part.js';
import { ADDRESS, changed, DISPATCHER, type Fault, rerouted, type Scenario, STRANGER } from './scenario.js';
import { type Dice, SimProcess, type World } from './world.js';

/** A process other than the dispatcher. */
export interface FaultyMember {
  readonly name: string;
  readonly plan: { readonly codes: readonly number[] };
  readonly process: SimProcess | undefined;
  readonly up: boolean;
  readonly provider: ProviderPart | undefined;
  readonly withdrawn: Set<number>;
  start(): void;
  crash(): void;
  leave(done: () => void): void;
}

export interface Faulty<Member extends FaultyMember = FaultyMember> {
  readonly world: World;
  readonly network: Network;
  readonly scenario: Scenario;
  readonly members: readonly Member[];
  readonly dispatching: SimDispatcher;
  reload(configuration: Scenario['configuration']): void;
  forgotten(member: Member): void;
}

/** Makes one fault after the other until it is told to stop. */
export class FaultMaker<Member extends FaultyMember> implements Record<Fault, () => void> {
  private readonly dice: Dice;
  private stopped = false;

  constructor(private readonly sim: Faulty<Member>) {
    this.dice = sim.world.dice;
    this.next();
  }

  private next(): void {
    const { faultEvery, faults } = this.sim.scenario;
    this.sim.world.later(this.dice.between(faultEvery / 2, faultEvery * 1.5), () => {
      if (this.stopped) return;
      const fault = this.dice.pick(faults);
      this.sim.world.trace(`fault ${fault}`);
      this[fault]();
      this.next();
    });
  }

  /** Everything is well from now on. */
  stop(): void {
    this.stopped = true;
    const { sim } = this;
    sim.network.heal();
    sim.dispatching.process?.resume();
    sim.dispatching.start();
    for (const member of sim.members) {
      member.process?.resume();
      for (const code of [...member.withdrawn]) this.provideAgain(member, code);
      member.start();
    }
    sim.reload(sim.scenario.configuration);
  }

  private soon(least: number, most: number, run: () => void): void {
    this.sim.world.later(this.dice.between(least, most), () => {
      if (!this.stopped) run();
    });
  }

  private anyWire() {
    const wires = [...this.sim.network.wires];
    return wires.length === 0 ? undefined : this.dice.pick(wires);
  }

  private anyMember(provides?: boolean): Member {
    const { members } = this.sim;
    const fitting = members.filter(({ plan }) => provides === undefined || plan.codes.length > 0 === provides);
    return this.dice.pick(fitting);
  }

  break(): void {
    const wire = this.anyWire();
    if (wire !== undefined) this.sim.network.break(wire, this.dice.chance(0.7) ? 1 : this.dice.between(200, 5000));
  }

  partition(): void {
    const { network } = this.sim;
    const { name } = this.anyMember();
    network.block(name, DISPATCHER);
    const reset = this.dice.chance(0.5);
    this.soon(200, 7000, () => network.unblock(name, DISPATCHER, reset));
  }

  loss(): void {
    this.damage('loss');
  }

  double(): void {
    this.damage('double');
  }

  private damage(kind: 'loss' | 'double'): void {
    const wire = this.anyWire();
    if (wire === undefined) return;
    const toAcceptor = this.dice.chance(0.5);
    // both kinds on one connection could even out in its counts, which no transport does
    if (wire.damagedAt === undefined) wire.direction(toAcceptor).damage = kind;
  }

  spike(): void {
    const direction = this.anyWire()?.direction(this.dice.chance(0.5));
    if (direction === undefined) return;
    direction.spike = this.dice.between(50, 1500);
    this.soon(300, 3000, () => {
      direction.spike = 0;
    });
  }

  subscriberCrash(): void {
    this.restart(this.anyMember(false));
  }

  providerCrash(): void {
    this.restart(this.anyMember(true));
  }

  private restart(member: Member): void {
    const again = () => this.soon(10, 4000, () => member.start());
    if (this.dice.chance(0.3)) member.leave(again);
    else {
      member.crash();
      again();
    }
  }

  pause(): void {
    const process = this.dice.chance(0.15) ? this.sim.dispatching.process : this.anyMember().process;
    if (process === undefined) return;
    this.sim.world.trace(`pause ${process.name}`);
    process.pause();
    this.soon(100, 5000, () => process.resume());
  }

  dispatcherCrash(): void {
    const { dispatching } = this.sim;
    if (this.dice.chance(0.6)) return;
    dispatching.crash();
    this.soon(5, 3000, () => dispatching.start());
  }

  dispatcherStop(): void {
    const { dispatching } = this.sim;
    if (this.dice.chance(0.6)) return;
    const { world } = this.sim;
    // stopping takes its time, also when the faults are over meanwhile
    dispatching.stop(() => world.later(this.stopped ? 1 : this.dice.between(5, 1500), () => dispatching.start()));
  }

  reload(): void {
    const { configuration } = this.sim.scenario;
    this.sim.reload(this.dice.chance(0.2) ? configuration : changed(configuration, this.dice));
  }

  /** To another provider and back, with what the first one sent still under way. */
  reroute(): void {
    const { configuration } = this.sim.scenario;
    this.sim.reload(rerouted(configuration, this.dice));
    this.soon(1, 60, () => this.sim.reload(configuration));
  }

  withdraw(): void {
    const member = this.anyMember(true);
    const code = this.dice.pick(member.plan.codes);
    if (!member.up || member.withdrawn.has(code)) return;
    member.withdrawn.add(code);
    this.sim.forgotten(member);
    member.provider?.withdraw(code);
    this.soon(100, 5000, () => this.provideAgain(member, code));
  }

  private provideAgain(member: Member, code: number): void {
    member.withdrawn.delete(code);
    if (member.process?.alive) member.provider?.provide(code);
  }

  /** Somebody who does not speak the protocol, or may not come in. */
  stranger(): void {
    const { world, network } = this.sim;
    const process = new SimProcess(world, STRANGER, {});
    const batch = this.nonsense();
    network.transport(process).dial(ADDRESS, { onUp: (link) => link.send(batch), onBatch: () => {} });
    world.later(this.dice.between(50, 500), () => process.kill());
  }

  private nonsense(): Uint8Array {
    const { dice } = this;
    const hello = payload.hello.encode({
      nonce: dice.bytes(8),
      instance: dice.bytes(16),
      name: 'stranger',
      token: 'no',
    });
    switch (dice.between(1, 4)) {
      case 1:
        return dice.bytes(dice.between(0, 80));
      case 2:
        return singleMessage({ type: Type.HELLO }, dice.bytes(20));
      case 3:
        return singleMessage({ type: Type.RESPONSE, code: 1001, line: 1, generation: 1 });
      default:
        return singleMessage({ type: Type.HELLO }, hello);
    }
  }

  amnesia(): void {
    const member = this.anyMember(true);
    if (!member.up) return;
    this.sim.forgotten(member);
    member.provider?.forget();
  }
}
