import { isMainThread } from 'node:worker_threads';
import type { Context } from 'zeromq';
import { TrunklineError } from '../errors.js';
import { type Log, silentLog } from '../ports.js';
import { collectYoung } from './collect-young.js';

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

export interface ZmqTransportOptions {
  /** Largest batch taken from a peer, in bytes; a larger one ends that peer's connection. Default 64 MiB. */
  readonly maxBatchBytes?: number;
  /** I/O threads of the process-wide ZeroMQ context; counts only before the first socket of the process. Default 1. */
  readonly ioThreads?: number;
  /** Bounds of one step of receiving: batches (default 64) and bytes (default 1 MiB). */
  readonly stepBatches?: number;
  readonly stepBytes?: number;
  /** Batches a peer may have waiting unread before TCP pushes back on it. Default 256. */
  readonly receiveBatches?: number;
  /** How long batches already handed over may still leave after close, in ms. Default 200. */
  readonly lingerMs?: number;
  /** First and longest pause before a lost or refused connection is dialled again, in ms. Default 100 and 2000. */
  readonly reconnectMs?: number;
  readonly reconnectMaxMs?: number;
  /** How long one attempt to connect may take, in ms. Default 5000. */
  readonly connectTimeoutMs?: number;
  /** How long a handshake may take once connected, in ms; then it counts as refused. Default 2000. */
  readonly handshakeTimeoutMs?: number;
  readonly curve?: CurveOptions;
  readonly log?: Log;
}

/** What a transport counts; monotonic. */
export interface ZmqCounters {
  /** Messages with another number of frames than a routing id and one batch. */
  droppedFrames: number;
  /** Batches dropped at `send` because the link was down or closed. */
  droppedSends: number;
  /** Accepted peers found gone by a send. */
  unreachable: number;
  /** Handshakes that failed, on listeners and on dialled links. */
  refusedHandshakes: number;
  /** Errors thrown by event receivers and errors of sockets that nothing else accounts for. */
  faults: number;
}

export interface Settings {
  readonly maxBatchBytes: number;
  readonly stepBatches: number;
  readonly stepBytes: number;
  readonly receiveBatches: number;
  readonly lingerMs: number;
  readonly reconnectMs: number;
  readonly reconnectMaxMs: number;
  readonly connectTimeoutMs: number;
  readonly handshakeTimeoutMs: number;
  readonly log: Log;
  /** Told of the bytes of each step, after it. */
  readonly received: (bytes: number) => void;
  readonly counters: ZmqCounters;
  readonly context: Context;
  /**
   * In a worker thread nothing may wait inside the addon: ending the worker would then end the whole process. There
   * sockets are polled, and no monitor is used.
   */
  readonly polled: boolean;
}

const timerMax = 2 ** 31 - 1;

export function settingsOf(options: ZmqTransportOptions, context: Context): Settings {
  const whole = (name: keyof ZmqTransportOptions, fallback: number, min: number, max: number): number => {
    const value = options[name] ?? fallback;
    if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
    throw new TrunklineError('OPTION_INVALID', `${name} must be a whole number from ${min} to ${max}`);
  };
  return {
    maxBatchBytes: whole('maxBatchBytes', 64 * 1024 * 1024, 32, 2 ** 31 - 1),
    stepBatches: whole('stepBatches', 64, 1, 1_000_000),
    stepBytes: whole('stepBytes', 1024 * 1024, 1, 2 ** 31 - 1),
    receiveBatches: whole('receiveBatches', 256, 1, 1_000_000),
    lingerMs: whole('lingerMs', 200, 0, timerMax),
    reconnectMs: whole('reconnectMs', 100, 1, timerMax),
    reconnectMaxMs: whole('reconnectMaxMs', 2000, 1, timerMax),
    connectTimeoutMs: whole('connectTimeoutMs', 5000, 1, timerMax),
    handshakeTimeoutMs: whole('handshakeTimeoutMs', 2000, 1, timerMax),
    log: options.log ?? silentLog,
    received: collectYoung,
    counters: { droppedFrames: 0, droppedSends: 0, unreachable: 0, refusedHandshakes: 0, faults: 0 },
    context,
    polled: !isMainThread,
  };
}

/** Options that every socket of a transport has. */
export function socketOptions(settings: Settings) {
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
