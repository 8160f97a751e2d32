import type { LinkEvents } from '../../ports.js';
import type { Address } from '../address.js';
import { type Settings, settingsOf, type TransportOptions } from '../settings.js';
import { type Dialled, SocketTransport } from '../socket-transport.js';
import { DialledLink } from './dialled.js';
import { ZmtpListener } from './listener.js';

export type { TransportCounters, TransportOptions } from '../settings.js';

/**
 * The ports over sockets of Node that speak ZeroMQ's protocol, ZMTP 3.1 with the NULL mechanism: every ZeroMQ socket
 * may be at the other end, and no thread stands between a message and the system. A link's `send` never waits and never
 * throws.
 */
export class ZmtpTransport extends SocketTransport<Settings> {
  /** @throws TrunklineError OPTION_INVALID */
  constructor(options: TransportOptions = {}) {
    super(settingsOf(options));
  }

  protected createListener(text: string, place: Address, events: LinkEvents): ZmtpListener {
    const where =
      place.scheme === 'ipc'
        ? { path: place.path }
        : { host: place.host === '*' ? '0.0.0.0' : place.host, port: place.port };
    return new ZmtpListener(text, where, events, this.settings);
  }

  protected createLink(_text: string, target: Address, events: LinkEvents, over: (link: Dialled) => void): DialledLink {
    return new DialledLink(target, events, this.settings, over);
  }
}
