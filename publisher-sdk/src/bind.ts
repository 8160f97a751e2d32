import { type Log, type payload, type SessionLimits, sameText, type Transport, TrunklineError } from '@trunkline/proto';
import { consoleLog, nodeContext } from '@trunkline/proto/connect';
import { type CurveOptions, openTransport } from '@trunkline/proto/transport';
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
  /**
   * Own pair of keys, and the public keys of the dispatchers that may dial (ZeroMQ's CURVE); docs/security.md. Without
   * the list whoever knows the public key. Default: anybody, in plain text.
   */
  readonly curve?: Omit<CurveOptions, 'serverKey'>;
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
  const { curve } = options;
  if (curve !== undefined && options.transport !== undefined) {
    throw new TrunklineError('OPTION_INVALID', 'curve goes with ZeroMQ, not with transport');
  }
  const log = options.log ?? consoleLog;
  const transport = options.transport ?? openTransport({ log, curve });
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
  return sameText(hello.token, token) ? undefined : new TrunklineError('UNAUTHENTICATED');
}
