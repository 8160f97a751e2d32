import { isMainThread } from 'node:worker_threads';
import type { Context } from 'zeromq';
import { type Settings, settingsOf, type TransportOptions, wholeNumber } from '../settings.js';

/** Keys in the Z85 text form (40 characters) that `curveKeyPair()` of zeromq makes. */
export interface CurveOptions {
  /** Own long-term key pair; a listener is the server of its connections, a dialled link the client. */
  readonly publicKey: string;
  readonly secretKey: string;
  /**
   * The public key that the dialled peer must have; a function when it depends on the address, where undefined means:
   * this one is dialled without CURVE. Without any server key nothing can be dialled.
   */
  readonly serverKey?: string | ((address: string) => string | undefined);
  /** The clients' public keys that a listener lets in; without it, whoever has the listener's public key. */
  readonly allowedKeys?: Iterable<string>;
}

export interface ZmqTransportOptions extends TransportOptions {
  /** I/O threads of the process-wide ZeroMQ context; counts only before the first socket of the process. Default 1. */
  readonly ioThreads?: number;
  /** Batches a peer may have waiting unread before TCP pushes back on it. Default 256. */
  readonly receiveBatches?: number;
  readonly curve?: CurveOptions;
}

export interface ZmqSettings extends Settings {
  readonly receiveBatches: number;
  readonly context: Context;
  /**
   * In a worker thread nothing may wait inside the addon: ending the worker would then end the whole process. There
   * sockets are polled, and no monitor is used.
   */
  readonly polled: boolean;
}

/** @throws TrunklineError OPTION_INVALID */
export function zmqSettings(options: ZmqTransportOptions, context: Context): ZmqSettings {
  const receiveBatches = wholeNumber('receiveBatches', options.receiveBatches ?? 256, 1, 1_000_000);
  return { ...settingsOf(options), receiveBatches, context, polled: !isMainThread };
}

/** Options that every socket of a transport has. */
export function socketOptions(settings: ZmqSettings) {
  return {
    context: settings.context,
    linger: settings.lingerMs,
    sendTimeout: 0,
    // The protocol's credit bounds what is sent; ZeroMQ's own mark would drop without a word.
    sendHighWaterMark: 0,
    receiveHighWaterMark: settings.receiveBatches,
    maxMessageSize: settings.maxBatchBytes,
    handshakeInterval: 10_000,
    // A peer whose host vanished leaves its connection behind; the session's heartbeats only forget the session.
    tcpKeepalive: 1,
    tcpKeepaliveIdle: 60,
    tcpKeepaliveInterval: 15,
    tcpKeepaliveCount: 4,
  };
}
