import { Connection } from './connection.js';
import { TrunklineError } from './errors.js';
import type { FaultListener } from './fault.js';
import { Flusher } from './flusher.js';
import { allocate, createNodeTimers, systemClock, systemRandom } from './node.js';
import { type Log, silentLog, type Transport } from './ports.js';
import { defaultSessionLimits, type Identity, type SessionContext, type SessionLimits } from './session-types.js';
import { MAX_DELAY } from './timers.js';
import { openTransport } from './transports/open.js';
import { curveKeyPair } from './transports/zmq/transport.js';
import { Turns } from './turns.js';

/** Keys of a dialling process, in Z85 (40 characters). */
export interface ConnectCurve {
  /** The public key that the peer must have; a function when it depends on the address. */
  readonly serverKey: string | ((address: string) => string);
  /** The own pair, for a peer that lists who may come in. Default: a new pair, known to nobody. */
  readonly publicKey?: string;
  readonly secretKey?: string;
}

export interface ConnectOptions {
  /** Shown to operators; never identity. Default: `process.title` and pid. */
  readonly name?: string;
  /** Credentials, if the peer asks for them. */
  readonly token?: string;
  /** Gives up waiting for the first session. */
  readonly signal?: AbortSignal;
  readonly log?: Log;
  readonly limits?: Partial<SessionLimits>;
  /** How long one of several addresses is tried before the next, ms. Default 2,000. */
  readonly attemptMs?: number;
  /** Encrypts, and proves who both ends are (ZeroMQ's CURVE); docs/security.md. Default: neither. */
  readonly curve?: ConnectCurve;
  /** Another transport than ZeroMQ, closed with the connection. */
  readonly transport?: Transport & { close(): Promise<void> };
}

/** Where to connect: an address, several that are tried in order, or a connection that another role of this process has. */
export type ConnectTarget = string | readonly string[] | Connection;

/** The log of a client or provider that is given none: what nobody listens to must not vanish. */
export const consoleLog: Log = {
  ...silentLog,
  warn: (fields, message) => console.warn(`trunkline: ${message}`, fields),
  error: (fields, message) => console.error(`trunkline: ${message}`, fields),
};

const instance = systemRandom.bytes(16);

/** Who this process is, for every session it has. */
export function processIdentity(name = `node-${process.pid}`): Identity {
  return { instance, name };
}

/** Least value of each limit; 0 would mean at once, without end (F54). */
const least: Readonly<SessionLimits> = {
  heartbeat: 1,
  livenessFactor: 2,
  maxMessage: 1024,
  receiveWindow: 1024,
  helloAfter: 1,
  helloCap: 1,
};

/** The limits completed from the defaults. @throws TrunklineError OPTION_INVALID: not a whole number in its range */
export function sessionLimits(given: Partial<SessionLimits> = {}): SessionLimits {
  const limits = { ...defaultSessionLimits };
  for (const name of Object.keys(limits) as (keyof SessionLimits)[]) {
    const value = given[name] ?? limits[name];
    limits[name] = between(`limits.${name}`, value, least[name], MAX_DELAY);
  }
  between('limits.heartbeat times limits.livenessFactor', limits.heartbeat * limits.livenessFactor, 1, MAX_DELAY);
  return limits;
}

function between(name: string, value: unknown, low: number, high: number): number {
  if (Number.isInteger(value) && (value as number) >= low && (value as number) <= high) return value as number;
  throw new TrunklineError(
    'OPTION_INVALID',
    `${name} must be a whole number from ${low} to ${high}, not ${String(value)}`,
  );
}

/**
 * The real clock, timers and random numbers, and limits. With `onFault` no fault of the core ends the process.
 * @throws TrunklineError OPTION_INVALID
 */
export function nodeContext(
  options: Pick<ConnectOptions, 'name' | 'limits'> = {},
  onFault?: FaultListener,
): SessionContext {
  const timers = createNodeTimers({ onFault });
  return {
    clock: systemClock,
    timers,
    random: systemRandom,
    flusher: new Flusher(queueMicrotask, onFault),
    turns: new Turns(systemClock, timers),
    identity: processIdentity(options.name),
    limits: sessionLimits(options.limits),
    allocate,
    ...(onFault === undefined ? {} : { onFault }),
  };
}

/** A connection over ZeroMQ, or the given one. @throws TrunklineError ADDRESS_INVALID, OPTION_INVALID */
export function openConnection(target: ConnectTarget, options: ConnectOptions = {}): Connection {
  if (target instanceof Connection) return target;
  const addresses = typeof target === 'string' ? [target] : [...target];
  for (const address of addresses) {
    if (typeof address !== 'string') throw new TrunklineError('ADDRESS_INVALID', 'an address must be a string');
  }
  const context = nodeContext(options);
  const { attemptMs } = options;
  if (attemptMs !== undefined) between('attemptMs', attemptMs, 1, MAX_DELAY);
  const transport = transportOf(options);
  return new Connection({
    context,
    transport,
    addresses,
    log: options.log ?? silentLog,
    dispose: () => transport.close(),
    ...(options.token === undefined ? {} : { token: options.token }),
    ...(options.attemptMs === undefined ? {} : { attempt: options.attemptMs }),
  });
}

function transportOf({ transport, curve }: ConnectOptions): Transport & { close(): Promise<void> } {
  if (curve === undefined) return transport ?? openTransport();
  if (transport !== undefined) throw new TrunklineError('OPTION_INVALID', 'curve goes with ZeroMQ, not with transport');
  const { serverKey, publicKey, secretKey } = curve;
  if ((publicKey === undefined) !== (secretKey === undefined)) {
    throw new TrunklineError('OPTION_INVALID', 'curve.publicKey and curve.secretKey go together');
  }
  const pair = publicKey === undefined || secretKey === undefined ? curveKeyPair() : { publicKey, secretKey };
  // a function that knows no key must not mean plain text
  const keyFor = typeof serverKey === 'function' ? (address: string) => serverKey(address) ?? '' : serverKey;
  return openTransport({ curve: { ...pair, serverKey: keyFor } });
}
