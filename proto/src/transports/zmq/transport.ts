import { Context, context as shared } from 'zeromq';
import { TrunklineError } from '../../errors.js';
import type { Link, LinkEvents, Listener, Transport } from '../../ports.js';
import { type Address, formatAddress, hostText, parseAddress } from '../address.js';
import { bind, numericHost } from '../listening.js';
import type { TransportCounters } from '../settings.js';
import { checkCurve, clientSecurity, KeyGuard, serverSecurity } from './curve.js';
import { DialledLink } from './dialled.js';
import { ZmqListener } from './listener.js';
import { type CurveOptions, type ZmqSettings, type ZmqTransportOptions, zmqSettings } from './settings.js';

export { curveKeyPair } from 'zeromq';
export { type Address, formatAddress, parseAddress } from '../address.js';
export { z85 } from '../keys.js';
export type { TransportCounters } from '../settings.js';
export type { CurveOptions, ZmqTransportOptions } from './settings.js';

/** Three ZeroMQ sockets stand behind a listener or a dialled link; the default of 1023 is soon reached. */
const maxSockets = 20_000;

/**
 * The ports over ZeroMQ's own library: one ROUTER per address listened at, one DEALER per address dialled. A link's
 * `send` never waits and never throws. For CURVE; without it `ZmtpTransport` has less on the way.
 */
export class ZmqTransport implements Transport {
  readonly #settings: ZmqSettings;
  readonly #listeners = new Set<ZmqListener>();
  readonly #links = new Set<DialledLink>();
  #curve: CurveOptions | undefined;
  #guard: KeyGuard | undefined;
  #closing: Promise<void> | undefined;

  /** @throws TrunklineError OPTION_INVALID */
  constructor(options: ZmqTransportOptions = {}) {
    const { curve, ioThreads } = options;
    if (curve !== undefined) checkCurve(curve);
    this.#curve = curve;
    // Who may come in is asked once per context, so a transport that decides it has one of its own.
    const context = curve?.allowedKeys === undefined ? shared : new Context();
    this.#settings = zmqSettings(options, context);
    try {
      if (context.maxSockets < maxSockets) context.maxSockets = maxSockets;
      if (ioThreads !== undefined) context.ioThreads = ioThreads;
    } catch (error) {
      this.#settings.log.debug({ error }, 'the ZeroMQ context is in use and keeps its settings');
    }
    if (curve?.allowedKeys !== undefined) this.#guard = new KeyGuard(this.#settings, curve.allowedKeys);
  }

  get counters(): Readonly<TransportCounters> {
    return this.#settings.counters;
  }

  /**
   * Changes keys while running. Connections that stand stay; the allowed keys and the client's keys count from the next
   * handshake, the listener's own pair from the next `listen`.
   * @throws TrunklineError OPTION_INVALID, also when it would switch CURVE or the list of allowed keys on or off
   */
  setCurve(curve: CurveOptions): void {
    checkCurve(curve);
    if (this.#curve === undefined || (curve.allowedKeys === undefined) !== (this.#guard === undefined)) {
      throw new TrunklineError('OPTION_INVALID', 'CURVE and its allowed keys are switched on when a transport is made');
    }
    this.#curve = curve;
    if (this.#guard !== undefined) this.#guard.allowed = new Set(curve.allowedKeys);
  }

  async listen(address: string, events: LinkEvents): Promise<Listener> {
    const target = parseAddress(address, { listen: true });
    this.#assertOpen();
    const endpoint = await endpointOf(target, address);
    this.#assertOpen();
    this.#guard?.start();
    const listener = new ZmqListener(address, endpoint, events, this.#settings, {
      ipv6: endpoint.startsWith('tcp://['),
      ...(this.#curve === undefined ? {} : serverSecurity(this.#curve)),
    });
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
    if (this.#curve !== undefined) clientSecurity(this.#curve, address);
    const link = new DialledLink(target, events, this.#settings, {
      security: () => (this.#curve === undefined ? {} : clientSecurity(this.#curve, address)),
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
    this.#guard?.close();
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new TrunklineError('CLOSED', 'the transport was closed before');
  }
}

/** What ZeroMQ is told to bind. */
async function endpointOf(target: Address, text: string): Promise<string> {
  if (target.scheme === 'ipc') return formatAddress(target);
  const host = await numericHost(target.host, text);
  return `tcp://${hostText(host)}:${target.port === 0 ? '*' : target.port}`;
}
