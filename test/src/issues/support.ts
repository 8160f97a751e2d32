import {
  Connection,
  headerFault,
  OFFSET,
  readU32,
  type SessionLimits,
  silentLog,
  Timer,
  type TrunklineError,
  typeName,
} from '@trunkline/proto';
import { Provider } from '@trunkline/publisher/core';
import { Client, type Subscription } from '@trunkline/subscriber/core';
import { ADDRESS, DispatcherWorld } from '../support/dispatcher-world.js';
import type { MemoryLink } from '../support/memory-link.js';

/** Where the dispatcher listens, and where a static provider does. */
export const FRONT = ADDRESS;
export const BACK = 'tcp://127.0.0.1:7500';

/** A message as it was sent; `from` is the dialling end's address, or `from <address>` for the end that accepted. */
export interface Sent {
  readonly from: string;
  readonly type: string;
  readonly code: number;
}

/** The real dispatcher core and both real SDK cores in a world in memory with a virtual clock. */
export class Parts {
  /** Every message that was put on any link. */
  readonly wire: Sent[] = [];

  private constructor(readonly made: DispatcherWorld) {
    made.world.tap = (from, batch) => {
      // a batch made to be wrong ends the walk
      for (let at = 0; headerFault(batch, at, batch.length, 2 ** 31) === undefined; at += readU32(batch, at)) {
        this.wire.push({ from, type: typeName(batch[at + OFFSET.type]!), code: readU32(batch, at + OFFSET.code) });
      }
    };
  }

  static async start(services: object[], more: object = {}): Promise<Parts> {
    return new Parts(await DispatcherWorld.start(services, more));
  }

  /** How many messages of a type (and code) were sent from an end. */
  sent(from: string, type: string, code?: number): number {
    return this.wire.filter(
      (each) => each.from === from && each.type === type && (code === undefined || each.code === code),
    ).length;
  }

  dial(limits: Partial<SessionLimits> = {}): Connection {
    const { world, network } = this.made;
    return new Connection({
      context: world.context(limits),
      transport: network,
      addresses: [FRONT],
      log: silentLog,
    });
  }

  client(limits: Partial<SessionLimits> = {}): Client {
    return new Client(this.dial(limits));
  }

  /** A provider that dials in. */
  provider(): Provider {
    const provider = new Provider();
    provider.attach(this.dial());
    return provider;
  }

  /** A provider at a static address. */
  async bind(address: string): Promise<Provider> {
    const provider = new Provider();
    await this.made.network.listen(address, provider.host(this.made.world.context()));
    return provider;
  }

  /** The process behind a connection dies; `told`: its connection breaks, otherwise it is only silent from now on. */
  kill(connection: Connection, told = true): void {
    const link = connection.session?.link as MemoryLink | undefined;
    if (link !== undefined) {
      if (told) link.cut();
      else link.deaf = true;
    }
    void connection.close();
  }

  /** The process at a static address dies. */
  async killAt(address: string, provider: Provider): Promise<void> {
    this.made.network.cut(address);
    this.made.network.forget(address);
    await this.settle();
    await provider.close();
  }

  settle(): Promise<void> {
    return this.made.settle();
  }

  advance(ms: number): Promise<void> {
    return this.made.advance(ms);
  }

  /** A pause on the virtual clock. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.made.world.timers.start(new Timer({ onTimer: () => resolve() }), ms);
    });
  }
}

/** What a subscription says, as short texts in order: states, gaps, ends, errors and the texts of its messages. */
export function record(subscription: Subscription): string[] {
  const lines: string[] = [];
  subscription.on('status', ({ state }) => lines.push(state));
  subscription.on('gap', ({ count, reason }) => lines.push(`gap ${count} ${reason}`));
  subscription.on('end', ({ code }) => lines.push(`end ${code}`));
  subscription.on('error', ({ code }: TrunklineError) => lines.push(`error ${code}`));
  subscription.on('message', (message) => lines.push(message.text()));
  return lines;
}
