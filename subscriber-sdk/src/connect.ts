import { type ConnectOptions, type ConnectTarget, consoleLog, openConnection } from '@trunkline/proto/connect';
import { Client } from './client.js';

/**
 * Resolves with a client once a session is open. Several addresses are tried in order, again and again. A connection
 * that another role of this process has is shared (rule 13).
 * @throws TrunklineError what the peer refused for good, ABORTED, ADDRESS_INVALID, OPTION_INVALID, HANDLER_EXISTS;
 * nothing of the attempt is left then
 */
export async function connect(target: ConnectTarget, options: ConnectOptions = {}): Promise<Client> {
  const connection = openConnection(target, options);
  const client = new Client(connection, { log: options.log ?? consoleLog });
  try {
    await connection.ready(options.signal);
  } catch (error) {
    await client.close();
    throw error;
  }
  return client;
}
