import type { ListenOptions } from 'node:net';
import { TrunklineError } from '../../errors.js';
import type { Link, LinkEvents, Listener, Transport } from '../../ports.js';
import { type Address, parseAddress } from '../address.js';
import { bind, numericHost } from '../listening.js';
import { type Settings, settingsOf, type TransportCounters, type TransportOptions } from '../settings.js';
import { DialledLink } from './dialled.js';
import { ZmtpListener } from './listener.js';

export type { TransportCounters, TransportOptions } from '../settings.js';

/**
 * The ports over sockets of Node that speak ZeroMQ's protocol, ZMTP 3.1 with the NULL mechanism: every ZeroMQ socket
 * may be at the other end, and no thread stands between a message and the system. A link's `send` never waits and never
 * throws.
 */
export class ZmtpTransport implements Transport {
  readonly #settings: Settings;
  readonly #listeners = new Set<ZmtpListener>();
  readonly #links = new Set<DialledLink>();
  #closing: Promise<void> | undefined;

  /** @throws TrunklineError OPTION_INVALID */
  constructor(options: TransportOptions = {}) {
    this.#settings = settingsOf(options);
  }

  get counters(): Readonly<TransportCounters> {
    return this.#settings.counters;
  }

  async listen(address: string, events: LinkEvents): Promise<Listener> {
    const target = parseAddress(address, { listen: true });
    this.#assertOpen();
    const place = await placeOf(target, address);
    this.#assertOpen();
    const listener = new ZmtpListener(address, place, events, this.#settings);
    this.#listeners.add(listener);
    await bind(
      address,
      target,
      listener,
      () => this.#assertOpen(),
      () => this.#listeners.delete(listener),
    );
    return listener;
  }

  dial(address: string, events: LinkEvents): Link {
    const target = parseAddress(address);
    this.#assertOpen();
    const link = new DialledLink(target, events, this.#settings, (closed) => this.#links.delete(closed));
    this.#links.add(link);
    return link;
  }

  /** Closes every listener and link. Resolves in every state, soon after the linger time. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    for (const link of this.#links) link.close();
    await Promise.all([
      ...[...this.#listeners].map((listener) => listener.close()),
      ...[...this.#links].map((link) => link.gone()),
    ]);
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new TrunklineError('CLOSED', 'the transport was closed before');
  }
}

/** What the system is told to bind. */
async function placeOf(target: Address, text: string): Promise<ListenOptions> {
  if (target.scheme === 'ipc') return { path: target.path };
  const host = target.host === '*' ? '0.0.0.0' : await numericHost(target.host, text);
  return { host, port: target.port };
}
