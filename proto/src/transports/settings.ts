import { TrunklineError } from '../errors.js';
import { type Log, silentLog } from '../ports.js';
import { collectYoung } from './collect-young.js';

export interface TransportOptions {
  /** Largest batch taken from a peer, in bytes; a larger one ends that peer's connection. Default 64 MiB. */
  readonly maxBatchBytes?: number;
  /** Bounds of one step of receiving: batches (default 64) and bytes (default 1 MiB). */
  readonly stepBatches?: number;
  readonly stepBytes?: number;
  /** How long batches already handed over may still leave after close, in ms. Default 200. */
  readonly lingerMs?: number;
  /** First and longest pause before a lost or refused connection is dialled again, in ms. Default 100 and 2000. */
  readonly reconnectMs?: number;
  readonly reconnectMaxMs?: number;
  /** How long one attempt to connect may take, in ms. Default 5000. */
  readonly connectTimeoutMs?: number;
  /** How long a handshake may take once connected, in ms; then it counts as refused. Default 2000. */
  readonly handshakeTimeoutMs?: number;
  readonly log?: Log;
}

/** What a transport counts; monotonic. */
export interface TransportCounters {
  /** Messages with another number of frames than a routing id and one batch. */
  droppedFrames: number;
  /** Batches dropped at `send` because the link was down or closed. */
  droppedSends: number;
  /** Accepted peers that went away without a word. */
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
  readonly lingerMs: number;
  readonly reconnectMs: number;
  readonly reconnectMaxMs: number;
  readonly connectTimeoutMs: number;
  readonly handshakeTimeoutMs: number;
  readonly log: Log;
  /** Told of the bytes of each step, after it. */
  readonly received: (bytes: number) => void;
  readonly counters: TransportCounters;
}

const timerMax = 2 ** 31 - 1;

/** An option that is a whole number. @throws TrunklineError OPTION_INVALID */
export function wholeNumber(name: string, value: unknown, min: number, max: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
  throw new TrunklineError('OPTION_INVALID', `${name} must be a whole number from ${min} to ${max}`);
}

/** @throws TrunklineError OPTION_INVALID */
export function settingsOf(options: TransportOptions): Settings {
  const whole = (name: keyof TransportOptions, fallback: number, min: number, max: number): number =>
    wholeNumber(name, options[name] ?? fallback, min, max);
  return {
    maxBatchBytes: whole('maxBatchBytes', 64 * 1024 * 1024, 32, 2 ** 31 - 1),
    stepBatches: whole('stepBatches', 64, 1, 1_000_000),
    stepBytes: whole('stepBytes', 1024 * 1024, 1, 2 ** 31 - 1),
    lingerMs: whole('lingerMs', 200, 0, timerMax),
    reconnectMs: whole('reconnectMs', 100, 1, timerMax),
    reconnectMaxMs: whole('reconnectMaxMs', 2000, 1, timerMax),
    connectTimeoutMs: whole('connectTimeoutMs', 5000, 1, timerMax),
    handshakeTimeoutMs: whole('handshakeTimeoutMs', 2000, 1, timerMax),
    log: options.log ?? silentLog,
    received: collectYoung,
    counters: { droppedFrames: 0, droppedSends: 0, unreachable: 0, refusedHandshakes: 0, faults: 0 },
  };
}
