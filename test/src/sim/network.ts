import {
  isData,
  type Link,
  type LinkEvents,
  type Listener,
  OFFSET,
  readU32,
  type Transport,
  TrunklineError,
  Type,
} from '@trunkline/proto';
import type { Dice, SimProcess, World } from './world.js';

/** Hears of everything on the wires. */
export interface Tap {
  sent(wire: Wire, toAcceptor: boolean, batch: Uint8Array): void;
  delivered(wire: Wire, toAcceptor: boolean, batch: Uint8Array): void;
  /** A batch of an open session was lost or doubled in mid-connection. */
  damaged(wire: Wire, toAcceptor: boolean): void;
}

/** Times of the network, ms. */
export interface NetworkTimes {
  readonly delay: number;
  readonly jitter: number;
  readonly redial: number;
}

/** One direction of a connection: keeps its order. */
class Direction {
  readonly queue: { readonly batch: Uint8Array; readonly at: number }[] = [];
  lastAt = 0;
  /** Added to the delay of each batch, ms. */
  spike = 0;
  /** What the next fitting batches suffer; one kind per connection, so that counts cannot even out. */
  damage: 'none' | 'loss' | 'double' = 'none';
  damages = 0;
}

/** A connection between a dialling and a listening process. */
export class Wire {
  readonly toAcceptor = new Direction();
  readonly toDialler = new Direction();
  open = true;
  /** The acceptor's transport knows that it is broken. */
  refused = false;
  /** What the acceptor calls the peer at the other end. */
  accepted: AcceptedLink | undefined;
  /** When a batch of the session was first lost or doubled. */
  damagedAt: number | undefined;

  constructor(
    readonly id: number,
    readonly dialled: DialledLink,
    readonly listener: SimListener,
  ) {}

  get dialler(): SimProcess {
    return this.dialled.process;
  }

  get acceptor(): SimProcess {
    return this.listener.process;
  }

  direction(toAcceptor: boolean): Direction {
    return toAcceptor ? this.toAcceptor : this.toDialler;
  }
}

export class AcceptedLink implements Link {
  closed = false;
  readonly label: string;

  constructor(readonly wire: Wire) {
    this.label = `${wire.listener.address}#${wire.id}`;
  }

  send(batch: Uint8Array): void {
    const { wire } = this;
    const { network, events, process } = wire.listener;
    if (this.closed || !process.alive) return;
    network.tap.sent(wire, false, batch);
    if (wire.open) network.send(wire, false, batch);
    else if (wire.refused) {
      // as a ROUTER with `mandatory`: the sender learns of it right after the call
      network.world.later(
        0,
        () => {
          if (!this.closed) events.onDown?.(this, 'unreachable');
          events.onStepEnd?.();
        },
        process,
      );
    }
  }

  close(): void {
    this.closed = true;
    if (this.wire.accepted === this) this.wire.accepted = undefined;
  }
}

export class DialledLink implements Link {
  wire: Wire | undefined;
  closed = false;
  private up = false;

  constructor(
    private readonly network: Network,
    readonly process: SimProcess,
    readonly label: string,
    readonly events: LinkEvents,
  ) {
    this.redial(1);
  }

  redial(pause: number): void {
    this.network.world.later(pause, () => this.attempt(), this.process);
  }

  private attempt(): void {
    if (this.closed || this.wire !== undefined) return;
    const wire = this.network.connect(this);
    if (wire === undefined) {
      this.redial(this.network.pause());
      return;
    }
    this.wire = wire;
    this.up = true;
    this.events.onUp?.(this);
    this.events.onStepEnd?.();
  }

  /** The transport finds out that the connection is broken. */
  down(wire: Wire, reason: string): void {
    if (this.closed || this.wire !== wire) return;
    this.wire = undefined;
    this.up = false;
    this.redial(this.network.pause());
    this.events.onDown?.(this, reason);
    this.events.onStepEnd?.();
  }

  send(batch: Uint8Array): void {
    const { wire, network } = this;
    if (!this.up || wire === undefined || !this.process.alive) return;
    network.tap.sent(wire, true, batch);
    if (wire.open) network.send(wire, true, batch);
  }

  close(): void {
    this.closed = true;
    if (this.wire !== undefined) this.network.finish(this.wire);
    this.wire = undefined;
  }
}

export class SimListener implements Listener {
  constructor(
    readonly network: Network,
    readonly process: SimProcess,
    readonly address: string,
    readonly events: LinkEvents,
  ) {}

  async close(): Promise<void> {
    this.network.unlisten(this);
  }
}

/** All connections between all processes, and what can go wrong with them. */
export class Network {
  readonly wires = new Set<Wire>();
  private readonly listeners = new Map<string, SimListener>();
  /** Processes that cannot reach each other; by name, so that a restart does not help. */
  private readonly blocked = new Set<string>();
  /** Broken connections of which the ends have not learned yet. */
  private readonly unnoticed = new Set<Wire>();
  private wireCount = 0;
  private readonly dice: Dice;

  constructor(
    readonly world: World,
    private readonly times: NetworkTimes,
    readonly tap: Tap,
  ) {
    this.dice = world.dice;
  }

  transport(process: SimProcess): Transport {
    process.onDeath = () => this.died(process);
    return {
      listen: async (address, events) => {
        if (this.listeners.has(address)) throw new TrunklineError('ADDRESS_IN_USE', address);
        const listener = new SimListener(this, process, address, events);
        this.listeners.set(address, listener);
        return listener;
      },
      dial: (address, events) => new DialledLink(this, process, address, events),
    };
  }

  pause(): number {
    return this.dice.between(this.times.redial / 2, this.times.redial * 1.5);
  }

  connect(dialled: DialledLink): Wire | undefined {
    const listener = this.listeners.get(dialled.label);
    // the kernel accepts for a process that is stopped
    if (listener === undefined || this.isBlocked(dialled.process, listener.process)) return undefined;
    const wire = new Wire(++this.wireCount, dialled, listener);
    this.wires.add(wire);
    return wire;
  }

  // ---- batches ----

  send(wire: Wire, toAcceptor: boolean, batch: Uint8Array): void {
    const direction = wire.direction(toAcceptor);
    let copies = 1;
    if (direction.damage !== 'none' && isCounted(batch)) {
      if (direction.damage === 'loss') copies = 0;
      else if (isControlOnly(batch)) copies = 2;
      if (copies !== 1) {
        direction.damage = 'none';
        direction.damages++;
        wire.damagedAt ??= this.world.now;
        this.tap.damaged(wire, toAcceptor);
        this.world.trace(`net ${copies === 0 ? 'loses' : 'doubles'} a batch on wire ${wire.id}`);
      }
    }
    for (let copy = 0; copy < copies; copy++) {
      const delay = this.times.delay + Math.floor(this.dice.next() * this.times.jitter) + direction.spike;
      const at = Math.max(direction.lastAt, this.world.now + delay);
      direction.lastAt = at;
      direction.queue.push({ batch, at });
      this.wake(wire, toAcceptor, at);
    }
  }

  private wake(wire: Wire, toAcceptor: boolean, at: number): void {
    const receiver = toAcceptor ? wire.acceptor : wire.dialler;
    this.world.later(at - this.world.now, () => this.deliver(wire, toAcceptor), receiver);
  }

  private deliver(wire: Wire, toAcceptor: boolean): void {
    const { queue } = wire.direction(toAcceptor);
    if (queue.length === 0 || queue[0]!.at > this.world.now) return;
    if (this.isBlocked(wire.dialler, wire.acceptor)) return;
    const events = toAcceptor ? wire.listener.events : wire.dialled.events;
    while (queue.length > 0 && queue[0]!.at <= this.world.now) {
      // read only now: the sender must not have written to it since it was sent
      const batch = queue.shift()!.batch.slice();
      // what is left of a connection that the dialling end has given up reaches nobody
      if (!toAcceptor && wire.dialled.wire !== wire) continue;
      this.tap.delivered(wire, toAcceptor, batch);
      if (toAcceptor) {
        wire.accepted ??= new AcceptedLink(wire);
        events.onBatch(wire.accepted, batch);
      } else events.onBatch(wire.dialled, batch);
    }
    events.onStepEnd?.();
  }

  // ---- the end of connections ----

  /** Breaks a connection: some batches that are under way still arrive. The ends learn of it after `notice` ms. */
  break(wire: Wire, notice: number, kept = this.dice.next()): void {
    if (!wire.open) return;
    wire.open = false;
    this.wires.delete(wire);
    let last = this.world.now;
    for (const direction of [wire.toAcceptor, wire.toDialler]) {
      direction.queue.length = Math.ceil(direction.queue.length * kept);
      if (direction.queue.length > 0) last = Math.max(last, direction.queue.at(-1)!.at);
    }
    const wait = last - this.world.now;
    this.unnoticed.add(wire);
    this.world.later(wait + notice, () => this.notice(wire));
  }

  private notice(wire: Wire): void {
    if (!this.unnoticed.delete(wire)) return;
    this.world.later(0, () => wire.dialled.down(wire, 'connection lost'), wire.dialler);
    this.world.later(0, () => this.suspect(wire), wire.acceptor);
  }

  /** The acceptor learns that somebody is gone, and soon after looks who. */
  private suspect(wire: Wire): void {
    wire.refused = true;
    const { events, process } = wire.listener;
    this.world.later(
      20,
      () => {
        events.onSuspect?.();
        events.onStepEnd?.();
      },
      process,
    );
  }

  /** Closed by an end: what it sent before arrives. */
  finish(wire: Wire): void {
    this.break(wire, 1, 1);
  }

  unlisten(listener: SimListener): void {
    if (this.listeners.get(listener.address) === listener) this.listeners.delete(listener.address);
    for (const wire of [...this.wires]) if (wire.listener === listener) this.finish(wire);
  }

  private died(process: SimProcess): void {
    for (const listener of [...this.listeners.values()]) {
      if (listener.process === process) this.listeners.delete(listener.address);
    }
    for (const wire of [...this.wires]) {
      // a process that dies tells; a machine that dies does not
      if (wire.dialler === process || wire.acceptor === process) {
        this.break(wire, this.dice.chance(0.7) ? 1 : this.dice.between(100, 4000));
      }
    }
  }

  // ---- partitions ----

  isBlocked(one: SimProcess, other: SimProcess): boolean {
    return this.blocked.size > 0 && this.blocked.has(pairOf(one.name, other.name));
  }

  /** Nothing passes between the two until `unblock`. */
  block(one: string, other: string): void {
    this.blocked.add(pairOf(one, other));
  }

  /** What waited arrives, or with `reset` the connections turn out to be broken. */
  unblock(one: string, other: string, reset: boolean): void {
    if (!this.blocked.delete(pairOf(one, other))) return;
    for (const wire of [...this.wires]) {
      if (pairOf(wire.dialler.name, wire.acceptor.name) !== pairOf(one, other)) continue;
      if (reset) this.break(wire, 1, 0);
      else {
        this.wake(wire, true, this.world.now);
        this.wake(wire, false, this.world.now);
      }
    }
  }

  /** No fault of this network lasts. */
  heal(): void {
    for (const pair of [...this.blocked]) {
      const [one, other] = pair.split('|');
      this.unblock(one!, other!, this.dice.chance(0.5));
    }
    // what is under way on them has the time to arrive that it had
    for (const wire of this.unnoticed) this.world.later(500, () => this.notice(wire));
    for (const wire of this.wires) {
      for (const direction of [wire.toAcceptor, wire.toDialler]) {
        direction.spike = 0;
        direction.damage = 'none';
      }
    }
  }
}

function pairOf(one: string, other: string): string {
  return one < other ? `${one}|${other}` : `${other}|${one}`;
}

/** Whether the session layer counts the batch, and so notices when it is lost or doubled. */
function isCounted(batch: Uint8Array): boolean {
  const type = batch[OFFSET.type]!;
  return type !== Type.HELLO && type !== Type.WELCOME && type !== Type.RESET && type !== Type.BYE;
}

function isControlOnly(batch: Uint8Array): boolean {
  for (let at = 0; at < batch.length; at += readU32(batch, at)) if (isData(batch[at + OFFSET.type]!)) return false;
  return true;
}
