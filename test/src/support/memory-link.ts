import {
  type Clock,
  defaultSessionLimits,
  Flusher,
  type Link,
  type LinkEvents,
  type Listener,
  type Random,
  type SessionContext,
  type SessionLimits,
  Timer,
  Timers,
  type Transport,
  TrunklineError,
  Turns,
} from '@trunkline/proto';

/** Repeatable random numbers (mulberry32). */
export class SeededRandom implements Random {
  constructor(private state = 1) {}

  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  }

  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => Math.floor(this.next() * 256));
  }
}

/**
 * A world without sockets and without time of its own: a virtual clock, and a queue of what is under way. Nothing is
 * delivered inside of a call that sends it.
 */
export class MemoryWorld {
  time = 1000;
  readonly clock: Clock = { now: () => this.time };
  readonly timers = new Timers(this.clock);
  readonly random = new SeededRandom();
  /** How long a batch is under way, ms of the virtual clock. */
  latency = 0;
  /** Hears of every batch as it is sent, with the label of the end that sends it. */
  tap: (label: string, batch: Uint8Array) => void = () => {};
  private queue: (() => void)[] = [];
  private processes = 0;

  later(run: () => void): void {
    this.queue.push(run);
  }

  /** Runs when a batch that is sent now arrives. */
  arrive(run: () => void): void {
    if (this.latency === 0) this.later(run);
    else this.timers.start(new Timer({ onTimer: run }), this.latency);
  }

  /** What one process gives its sessions; each call is a process of its own. */
  context(limits: Partial<SessionLimits> = {}, name = `process-${++this.processes}`): SessionContext {
    return {
      clock: this.clock,
      timers: this.timers,
      random: this.random,
      flusher: new Flusher((run) => this.later(run)),
      turns: new Turns(this.clock, this.timers),
      identity: { instance: this.random.bytes(16), name },
      limits: { ...defaultSessionLimits, ...limits },
    };
  }

  /** Delivers everything that is under way, and lets promises go on, until nothing more happens. */
  async settle(): Promise<void> {
    for (let quiet = 0; quiet < 2; quiet++) {
      while (this.queue.length > 0) {
        const queue = this.queue;
        this.queue = [];
        for (const run of queue) run();
        quiet = 0;
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Moves time on by `ms`, from deadline to deadline, settling at each. */
  async advance(ms: number): Promise<void> {
    const end = this.time + ms;
    await this.settle();
    for (;;) {
      const next = this.timers.nextDeadline();
      if (next === undefined || next > end) break;
      this.time = Math.max(this.time, next);
      this.timers.advance();
      await this.settle();
    }
    // what is handled may take time, too
    this.time = Math.max(this.time, end);
    this.timers.advance();
    await this.settle();
  }
}

/** One end of a connection in memory. Batches arrive as copies. */
export class MemoryLink implements Link {
  peer: MemoryLink | undefined;
  closed = false;
  /** While set, what is sent vanishes without a word. */
  deaf = false;
  /** Every batch that was sent while the link was up. */
  sent = 0;

  constructor(
    private readonly world: MemoryWorld,
    readonly label: string,
    readonly events: LinkEvents,
    private readonly accepted = false,
  ) {}

  send(batch: Uint8Array): void {
    const { peer } = this;
    if (peer === undefined || this.deaf) return;
    this.sent++;
    const copy = batch.slice();
    this.world.tap(this.label, copy);
    this.world.arrive(() => {
      if (peer.peer === this) peer.receive(copy);
    });
  }

  private receive(batch: Uint8Array): void {
    if (!this.closed) {
      this.events.onBatch(this, batch);
      this.events.onStepEnd?.();
    } else if (this.accepted && this.peer !== undefined) {
      // the acceptor forgot the peer, which is there still: it is a stranger now
      const renewed = new MemoryLink(this.world, this.label, this.events, true);
      renewed.peer = this.peer;
      this.peer.peer = renewed;
      this.peer = undefined;
      renewed.receive(batch);
    }
  }

  close(): void {
    this.closed = true;
  }

  /** Breaks the connection: what is under way is lost, both ends hear of it. */
  cut(): void {
    const { peer } = this;
    if (peer === undefined) return;
    this.peer = undefined;
    peer.peer = undefined;
    this.world.later(() => {
      for (const end of [peer, this]) if (!end.closed) end.events.onDown?.(end, 'cut');
    });
  }
}

/** Two joined links, for sessions that are made by hand. */
export function memoryPair(world: MemoryWorld, left: LinkEvents, right: LinkEvents): [MemoryLink, MemoryLink] {
  const pair: [MemoryLink, MemoryLink] = [new MemoryLink(world, 'left', left), new MemoryLink(world, 'right', right)];
  pair[0].peer = pair[1];
  pair[1].peer = pair[0];
  return pair;
}

interface Dialled {
  readonly link: MemoryLink;
  readonly address: string;
}

/** Addresses of a world. A dialled link comes up as soon as somebody listens at its address. */
export class MemoryNetwork implements Transport {
  private readonly listeners = new Map<string, LinkEvents>();
  private dialled: Dialled[] = [];

  constructor(private readonly world: MemoryWorld) {}

  async listen(address: string, events: LinkEvents): Promise<Listener> {
    if (this.listeners.has(address)) throw new TrunklineError('ADDRESS_IN_USE', address);
    this.listeners.set(address, events);
    for (const { link } of this.at(address)) this.connect(link, address);
    const close = async () => {
      this.listeners.delete(address);
      // what was sent before still arrives
      this.world.later(() => this.cut(address));
    };
    return { address, close };
  }

  dial(address: string, events: LinkEvents): Link {
    const link = new MemoryLink(this.world, address, events);
    this.dialled.push({ link, address });
    if (this.listeners.has(address)) this.connect(link, address);
    return link;
  }

  /** Transports are closed by those who own them; a network has nothing to give back. */
  async close(): Promise<void> {}

  /** Breaks all connections to the address: what is under way is lost. They stay down until `restore`. */
  cut(address: string): void {
    for (const { link } of this.at(address)) link.cut();
  }

  restore(address: string): void {
    if (!this.listeners.has(address)) return;
    for (const { link } of this.at(address)) if (link.peer === undefined) this.connect(link, address);
  }

  /** The process that listens there is gone, without having closed anything. */
  forget(address: string): void {
    this.listeners.delete(address);
  }

  /** The dialling ends at the address. */
  links(address: string): MemoryLink[] {
    return this.at(address).map(({ link }) => link);
  }

  private at(address: string): Dialled[] {
    this.dialled = this.dialled.filter(({ link }) => !link.closed);
    return this.dialled.filter((entry) => entry.address === address);
  }

  private connect(link: MemoryLink, address: string): void {
    const accepted = new MemoryLink(this.world, `from ${address}`, this.listeners.get(address)!, true);
    link.peer = accepted;
    accepted.peer = link;
    this.world.later(() => {
      if (!link.closed && link.peer === accepted) link.events.onUp?.(link);
    });
  }
}
