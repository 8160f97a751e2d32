import { readFileSync } from 'node:fs';
import type { ConnectCurve } from '@trunkline/proto/connect';
import { curveKeyBytes, type KeyFault, parseKey, parseKeys, publicKeyOf } from '@trunkline/proto/keys';
import type { Input } from './command.js';
import { Exit, Failure } from './exit.js';

export interface KeyPair {
  readonly publicKey: string;
  readonly secretKey: string;
}

const usage = (message: string): Failure => new Failure(Exit.USAGE, message);

/** An option, else its environment variable; empty is absent. */
function setting(input: Input, name: string): { readonly value: string; readonly from: string } | undefined {
  const variable = `TRUNKLINE_${name.replaceAll('-', '_').toUpperCase()}`;
  const option = input.text(name);
  if (option !== undefined) return { value: option, from: `--${name}` };
  const value = process.env[variable];
  return value ? { value, from: variable } : undefined;
}

function publicKey(input: Input, name: string): string | undefined {
  const found = setting(input, name);
  if (found === undefined) return undefined;
  if (curveKeyBytes(found.value) === undefined) throw usage(`${found.from} must be a key of 40 characters (Z85)`);
  return found.value;
}

/** Keys of a command that dials; undefined: plain text. @throws Failure USAGE */
export function curveOf(input: Input): ConnectCurve | undefined {
  const serverKey = publicKey(input, 'curve-server-key');
  const pair = pairOf(input);
  if (serverKey !== undefined) return { serverKey, ...pair };
  if (pair === undefined) return undefined;
  throw usage('own keys need --curve-server-key, the public key of the dispatcher');
}

/** The own pair, from the secret key alone. @throws Failure USAGE */
export function pairOf(input: Input): KeyPair | undefined {
  const file = setting(input, 'curve-secret-key-file');
  const expected = publicKey(input, 'curve-public-key');
  if (file === undefined) {
    if (expected !== undefined) throw usage('--curve-public-key needs --curve-secret-key-file');
    return undefined;
  }
  const { key: secretKey } = keysIn<{ key: string }>(file.value, parseKey);
  const own = publicKeyOf(secretKey)!;
  if (expected !== undefined && expected !== own) {
    throw usage(`the secret key in ${file.value} does not belong to the public key`);
  }
  return { publicKey: own, secretKey };
}

/** Public keys, one a line. @throws Failure USAGE */
export function allowedKeysOf(input: Input): readonly string[] | undefined {
  const file = setting(input, 'curve-allowed-keys-file');
  return file === undefined ? undefined : keysIn<{ keys: readonly string[] }>(file.value, parseKeys).keys;
}

function keysIn<T extends object>(file: string, parse: (text: string) => T | KeyFault): T {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw usage(`${file}: ${(error as Error).message}`);
  }
  const parsed = parse(text);
  if ('message' in parsed) throw usage(`${file}: line ${parsed.line}: ${parsed.message}`);
  return parsed;
}
