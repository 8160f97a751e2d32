import { type Log, type payload, type SessionLimits, type Transport, TrunklineError } from '@trunkline/proto';
import { nodeContext } from '@trunkline/proto/connect';
import { ZmqTransport } from '@trunkline/proto/zmq';
import { consoleLog } from './console-log.js';
import { Provider } from './provider.js';

export interface BindOptions {
  /** Shown to operators; never identity. */
  readonly name?: string;
  /** What a dispatcher must give as its credentials. Default: anybody may dial. */
  readonly token?: string;
  readonly log?: Log;
  readonly limits?: Partial<SessionLimits>;
  /** Most dispatchers at one time. Default 64. */
  readonly maxSessions?: number;
  /** Another transport than ZeroMQ, closed with the provider. */
  readonly transport?: Transport & { close(): Promise<void> };
}

/**
 * Listens at a static address, for dispatchers whose forwarding table names it. `provider.address` tells the real
 * one where the port is `0` or `*`.
 * @throws TrunklineError ADDRESS_INVALID, ADDRESS_IN_USE, OPTION_INVALID
 */
export async function bind(address: string, options: BindOptions = {}): Promise<Provider> {
  const { token, maxSessions } = options;
  if (typeof address !== 'string') throw new TrunklineError('ADDRESS_INVALID', 'an address must be a string');
  if (token !== undefined && typeof token !== 'string') throw new TrunklineError('OPTION_INVALID', 'token');
  if (maxSessions !== undefined && !(Number.isInteger(maxSessions) && maxSessions > 0)) {
    throw new TrunklineError('OPTION_INVALID', 'maxSessions must be a positive integer');
  }
  const log = options.log ?? consoleLog;
  const transport = options.transport ?? new ZmqTransport();
  const provider = new Provider({ log, dispose: () => transport.close() });
  const host = provider.host(nodeContext(options), {
    ...(maxSessions === undefined ? {} : { maxSessions }),
    ...(token === undefined ? {} : { authenticate: (hello) => refusal(hello, token) }),
  });
  try {
    provider.address = (await transport.listen(address, host)).address;
  } catch (error) {
    await provider.close();
    throw error;
  }
  return provider;
}

function refusal(hello: payload.Hello, token: string): TrunklineError | undefined {
  return equalText(hello.token, token) ? undefined : new TrunklineError('UNAUTHENTICATED');
}

/** In a time that does not tell how much of it is right. */
function equalText(given: string, expected: string): boolean {
  let different = given.length ^ expected.length;
  for (let index = 0; index < given.length; index++) {
    different |= given.charCodeAt(index) ^ expected.charCodeAt(index % Math.max(1, expected.length));
  }
  return different === 0;
}
