import type { TrunklineError } from '@trunkline/proto';
import { type ConnectOptions, openConnection } from '@trunkline/proto/connect';
import { Client } from '@trunkline/subscriber/core';
import type { Input, Options } from './command.js';
import { curveOf } from './curve.js';
import { Exit, Failure } from './exit.js';
import { complain } from './output.js';

export const DEFAULT_ADDRESS = 'tcp://127.0.0.1:7400';

/** What every command that talks to a dispatcher takes. */
export const connectionOptions = {
  dispatcher: {
    value: 'ADDRESS',
    help: `address(es) of the dispatcher, divided by commas; else TRUNKLINE_DISPATCHER, else ${DEFAULT_ADDRESS}`,
  },
  token: { value: 'TOKEN', help: 'credentials; better in TRUNKLINE_TOKEN, which others cannot see' },
  'curve-server-key': {
    value: 'KEY',
    help: 'public key of the dispatcher, for encryption; else TRUNKLINE_CURVE_SERVER_KEY',
  },
  'curve-secret-key-file': {
    value: 'FILE',
    help: 'own secret key (trunkline keygen); else TRUNKLINE_CURVE_SECRET_KEY_FILE, else a new one',
  },
  'curve-public-key': {
    value: 'KEY',
    help: 'checked against the secret key, if given; else TRUNKLINE_CURVE_PUBLIC_KEY',
  },
} as const satisfies Options;

export function addressesOf(input: Input): string[] {
  const text = input.text('dispatcher') ?? (process.env.TRUNKLINE_DISPATCHER || DEFAULT_ADDRESS);
  return text.split(',').map((address) => address.trim());
}

export function connectOptions(input: Input, command: string): ConnectOptions {
  const curve = curveOf(input);
  return { ...processOptions(input, command), ...(curve === undefined ? {} : { curve }) };
}

/** What a listening process has of them too. */
export function processOptions(input: Input, command: string): { readonly name: string; readonly token?: string } {
  const token = input.text('token') ?? process.env.TRUNKLINE_TOKEN;
  return { name: `trunkline-${command}-${process.pid}`, ...(token === undefined ? {} : { token }) };
}

/** A client that connects in the background and comes back by itself. */
export function openClient(input: Input, command: string): Client {
  const client = new Client(openConnection(addressesOf(input), connectOptions(input, command)));
  client.on('error', (error: TrunklineError) => complain(`${error.code}: ${error.message}`));
  return client;
}

/** For commands that end with an answer: rejects when the handshake is refused, which `openClient` has told. */
export function refusalOf(client: Client): Promise<never> {
  return new Promise((_, reject) => {
    client.on('error', ({ code }) => {
      if (code === 'HANDSHAKE_REFUSED') reject(new Failure(Exit.FAILED, ''));
    });
  });
}
