import { Connection } from './connection.js';
import { TrunklineError } from './errors.js';
import { Flusher } from './flusher.js';
import { createNodeTimers, systemClock, systemRandom } from './node.js';
import { type Log, silentLog, type Transport } from './ports.js';
import { defaultSessionLimits, type Identity, type SessionContext, type SessionLimits } from './session.js';
import { ZmqTransport } from './transports/zmq.js';

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
  /** Another transport than ZeroMQ, closed with the connection. */
  readonly transport?: Transport & { close(): Promise<void> };
}

/** Where to connect: an address, several that are tried in order, or a connection that another role of this process has. */
export type ConnectTarget = string | readonly string[] | Connection;

const instance = systemRandom.bytes(16);

/** Who this process is, for every session it has. */
export function processIdentity(name = `node-${process.pid}`): Identity {
  return { instance, name };
}

/** The real clock, timers and random numbers, and limits. */
export function nodeContext(options: Pick<ConnectOptions, 'name' | 'limits'> = {}): SessionContext {
  return {
    clock: systemClock,
    timers: createNodeTimers(),
    random: systemRandom,
    flusher: new Flusher(queueMicrotask),
    identity: processIdentity(options.name),
    limits: { ...defaultSessionLimits, ...options.limits },
  };
}

/** A connection over ZeroMQ, or the given one. @throws TrunklineError ADDRESS_INVALID, OPTION_INVALID */
export function openConnection(target: ConnectTarget, options: ConnectOptions = {}): Connection {
  if (target instanceof Connection) return target;
  const addresses = typeof target === 'string' ? [target] : [...target];
  for (const address of addresses) {
    if (typeof address !== 'string') throw new TrunklineError('ADDRESS_INVALID', 'an address must be a string');
  }
  const transport = options.transport ?? new ZmqTransport();
  return new Connection({
    context: nodeContext(options),
    transport,
    addresses,
    log: options.log ?? silentLog,
    dispose: () => transport.close(),
    ...(options.token === undefined ? {} : { token: options.token }),
    ...(options.attemptMs === undefined ? {} : { attempt: options.attemptMs }),
  });
}
