import type { TransportOptions } from './settings.js';
import { type CurveOptions, ZmqTransport } from './zmq/transport.js';
import { ZmtpTransport } from './zmtp/transport.js';

export type { TransportOptions } from './settings.js';
export type { CurveOptions } from './zmq/settings.js';

export interface OpenTransportOptions extends TransportOptions {
  /** Encrypts, and proves who both ends are. */
  readonly curve?: CurveOptions | undefined;
}

/**
 * The transport for `tcp://` and `ipc://`. The wire is ZeroMQ's either way: without CURVE sockets of Node speak it, which
 * spares each message two threads; CURVE is what ZeroMQ's library does.
 * @throws TrunklineError OPTION_INVALID
 */
export function openTransport({ curve, ...options }: OpenTransportOptions = {}): ZmtpTransport | ZmqTransport {
  return curve === undefined ? new ZmtpTransport(options) : new ZmqTransport({ ...options, curve });
}
