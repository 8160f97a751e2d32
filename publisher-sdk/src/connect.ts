import { type ConnectOptions, type ConnectTarget, consoleLog, openConnection } from '@trunkline/proto/connect';
import { Provider } from './provider.js';

/**
 * Dials in to a dispatcher and resolves with the first session. The target is an address, several that are tried in
 * order, or a connection that a subscriber of this process has (`client.connection`, rule 13). From then on the
 * provider reconnects by itself (rule 11).
 * @throws TrunklineError ADDRESS_INVALID, OPTION_INVALID, ABORTED, or why the dispatcher will not have it
 */
export async function connect(target: ConnectTarget, options: ConnectOptions = {}): Promise<Provider> {
  const provider = new Provider({ log: options.log ?? consoleLog });
  provider.attach(openConnection(target, options));
  try {
    await provider.connection!.ready(options.signal);
  } catch (error) {
    await provider.close();
    throw error;
  }
  return provider;
}
