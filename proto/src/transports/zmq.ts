import { Context, context as shared } from 'zeromq';
import { TrunklineError } from '../errors.js';
import type { Link, LinkEvents, Listener, Transport } from '../ports.js';
import { ZmqListener } from './accepted.js';
import { type Address, formatAddress, hostText, isHostName, parseAddress } from './address.js';
import { checkCurve, clientSecurity, KeyGuard, serverSecurity } from './curve.js';
import { DialledLink } from './dialled.js';
import { bindIpc, type IpcFile, removeIpc } from './ipc.js';
import { lookUp } from './resolve.js';
import {
  type CurveOptions,
  type Settings,
  settingsOf,
  type ZmqCounters,
  type ZmqTransportOptions,
} from './settings.js';

export { curveKeyPair } from 'zeromq';
export { type Address, formatAddress, parseAddress } from './address.js';
export { z85 } from './keys.js';
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
    this.#settings = settingsOf(options, context);
    try {
      if (context.maxSockets < maxSockets) context.maxSockets = maxSockets;
      if (ioThreads !== undefined) context.ioThreads = ioThreads;
    } catch (error) {
      this.#settings.log.debug({ error }, 'the ZeroMQ context is in use and keeps its settings');
    }
    if (curve?.allowedKeys !== undefined) this.#guard = new KeyGuard(this.#settings, curve.allowedKeys);
  }

  get counters(): Readonly<ZmqCounters> {
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
    const listener = new ZmqListener(address, events, this.#settings, {
      ipv6: endpoint.startsWith('tcp://['),
      ...(this.#curve === undefined ? {} : serverSecurity(this.#curve)),
    });
    this.#listeners.add(listener);
    let file: IpcFile | undefined;
    const release = async () => {
      this.#listeners.delete(listener);
      if (file !== undefined) await removeIpc(file);
    };
    try {
      let bound: string;
      if (target.scheme === 'ipc') ({ bound, file } = await bindIpc(target.path, () => listener.start(endpoint)));
      else bound = await listener.start(endpoint);
      this.#assertOpen();
      listener.serve(boundAddress(target, bound), release);
      return listener;
    } catch (error) {
      await listener.close();
      await release();
      throw listenError(address, error);
    }
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
