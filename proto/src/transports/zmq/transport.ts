import { Context, context as shared } from 'zeromq';
import { TrunklineError } from '../../errors.js';
import type { LinkEvents } from '../../ports.js';
import { type Address, formatAddress, hostText, isIPv6 } from '../address.js';
import { type Dialled, SocketTransport } from '../socket-transport.js';
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
export class ZmqTransport extends SocketTransport<ZmqSettings> {
  #curve: CurveOptions | undefined;
  #guard: KeyGuard | undefined;

  /** @throws TrunklineError OPTION_INVALID */
  constructor(options: ZmqTransportOptions = {}) {
    const { curve, ioThreads } = options;
    if (curve !== undefined) checkCurve(curve);
    // Who may come in is asked once per context, so a transport that decides it has one of its own.
    const context = curve?.allowedKeys === undefined ? shared : new Context();
    super(zmqSettings(options, context));
    this.#curve = curve;
    try {
      if (context.maxSockets < maxSockets) context.maxSockets = maxSockets;
      if (ioThreads !== undefined) context.ioThreads = ioThreads;
    } catch (error) {
      this.settings.log.debug({ error }, 'the ZeroMQ context is in use and keeps its settings');
    }
    if (curve?.allowedKeys !== undefined) this.#guard = new KeyGuard(this.settings, curve.allowedKeys);
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

  protected createListener(text: string, place: Address, events: LinkEvents): ZmqListener {
    this.#guard?.start();
    return new ZmqListener(text, endpointOf(place), events, this.settings, {
      ipv6: place.scheme === 'tcp' && isIPv6(place.host),
      ...(this.#curve === undefined ? {} : serverSecurity(this.#curve)),
    });
  }

  protected createLink(text: string, target: Address, events: LinkEvents, over: (link: Dialled) => void): DialledLink {
    if (this.#curve !== undefined) clientSecurity(this.#curve, text);
    return new DialledLink(target, events, this.settings, {
      security: () => (this.#curve === undefined ? {} : clientSecurity(this.#curve, text)),
      over,
    });
  }

  protected override release(): void {
    this.#guard?.close();
  }
}

/** What ZeroMQ is told to bind. */
function endpointOf(place: Address): string {
  if (place.scheme === 'ipc') return formatAddress(place);
  return `tcp://${hostText(place.host)}:${place.port === 0 ? '*' : place.port}`;
}
