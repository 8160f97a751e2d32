import { context, type Dealer, type Router, type SocketOptions } from 'zeromq';
import { TrunklineError } from '../errors.js';
import type { Link, LinkEvents, Listener, Transport } from '../ports.js';
import { ZmqListener } from './accepted.js';
import { type Address, formatAddress, hostText, isHostName, parseAddress } from './address.js';
import { DialledLink } from './dialled.js';
import { lookUp } from './resolve.js';
import { type Settings, settingsOf, type ZmqCounters, type ZmqTransportOptions } from './settings.js';

export { type Address, formatAddress, parseAddress } from './address.js';
export type { CurveOptions, ZmqCounters, ZmqTransportOptions } from './settings.js';

/** Three ZeroMQ sockets stand behind a listener or a dialled link; the default of 1023 is soon reached. */
const maxSockets = 20_000;

/**
 * The ports over ZeroMQ: one ROUTER per address listened at, one DEALER per address dialled. A link's `send` never
 * waits and never throws.
 */
export class ZmqTransport implements Transport {
  readonly #settings: Settings;
  readonly #listeners = new Set<ZmqListener>();
  readonly #links = new Set<DialledLink>();
  #closing: Promise<void> | undefined;

  /** @throws TrunklineError OPTION_INVALID */
  constructor(options: ZmqTransportOptions = {}) {
    this.#settings = settingsOf(options, context);
    try {
      if (context.maxSockets < maxSockets) context.maxSockets = maxSockets;
      if (options.ioThreads !== undefined) context.ioThreads = options.ioThreads;
    } catch (error) {
      this.#settings.log.debug({ error }, 'the ZeroMQ context is in use and keeps its settings');
    }
  }

  get counters(): Readonly<ZmqCounters> {
    return this.#settings.counters;
  }

  async listen(address: string, events: LinkEvents): Promise<Listener> {
    const target = parseAddress(address, { listen: true });
    this.#assertOpen();
    const endpoint = await endpointOf(target, address);
    const listener = new ZmqListener(address, events, this.#settings, this.#serverOptions(endpoint));
    this.#listeners.add(listener);
    try {
      const bound = await listener.start(endpoint);
      listener.serve(boundAddress(target, bound), async () => {
        this.#listeners.delete(listener);
      });
      return listener;
    } catch (error) {
      this.#listeners.delete(listener);
      throw listenError(address, error);
    }
  }

  dial(address: string, events: LinkEvents): Link {
    const target = parseAddress(address);
    this.#assertOpen();
    const link = new DialledLink(target, events, this.#settings, {
      security: () => this.#clientOptions(),
      gone: (closed) => this.#links.delete(closed),
    });
    this.#links.add(link);
    return link;
  }

  /** Closes every listener and link. Resolves in every state, at most about a second after the linger time. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    for (const link of this.#links) link.close();
    await Promise.all([
      ...[...this.#listeners].map((listener) => listener.close()),
      ...[...this.#links].map((link) => link.closed()),
    ]);
  }

  #serverOptions(endpoint: string): SocketOptions<Router> {
    return { ipv6: endpoint.startsWith('tcp://[') };
  }

  #clientOptions(): SocketOptions<Dealer> {
    return {};
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new TrunklineError('CLOSED', 'the transport was closed before');
  }
}

/** What ZeroMQ is told to bind: a name becomes the first of its numeric addresses. */
async function endpointOf(target: Address, text: string): Promise<string> {
  if (target.scheme === 'ipc') return formatAddress(target);
  let host = target.host;
  if (isHostName(host)) {
    const [first] = await lookUp(host);
    if (first === undefined) {
      throw new TrunklineError('ADDRESS_INVALID', `cannot listen at "${text}": the host name is unknown`);
    }
    host = first;
  }
  return `tcp://${hostText(host)}:${target.port === 0 ? '*' : target.port}`;
}

function boundAddress(target: Address, bound: string): string {
  if (target.scheme === 'ipc' || target.port !== 0) return formatAddress(target);
  const port = Number(bound.slice(bound.lastIndexOf(':') + 1));
  return formatAddress({ ...target, port });
}

function listenError(address: string, error: unknown): unknown {
  if (error instanceof TrunklineError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  const code = (error as { code?: string }).code === 'EADDRINUSE' ? 'ADDRESS_IN_USE' : 'ADDRESS_INVALID';
  return new TrunklineError(code, `cannot listen at "${address}": ${reason}`, { cause: error });
}
