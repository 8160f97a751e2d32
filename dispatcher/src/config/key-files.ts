import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { curveKeyBytes, type KeyFault, parseKey, parseKeys, publicKeyOf } from '@trunkline/proto/keys';
import type { CurveDefinition } from '../service.js';
import type { JsonDocument } from './document.js';
import type { ProviderInput } from './input.js';
import { reasonOf } from './reason.js';
import type { RuleOptions } from './rules.js';
import { decodeText } from './text.js';

/** Room for a hundred thousand keys with comments, bytes. */
const maxKeyFile = 16 * 1024 * 1024;

/** @throws Error that says why, for people */
export function readKeyFile(path: string): string {
  const content = readRegular(path);
  const { text, problem } = decodeText(content);
  if (problem !== undefined) throw new Error(problem.message);
  return text;
}

function readRegular(path: string): Uint8Array {
  try {
    // a pipe would hold up the whole process
    const stat = statSync(path);
    if (stat.isDirectory()) throw Object.assign(new Error(), { code: 'EISDIR' });
    if (!stat.isFile()) throw new Error('it is no regular file');
    if (stat.size > maxKeyFile) throw new Error(`it is larger than ${maxKeyFile} bytes`);
    return readFileSync(path);
  } catch (error) {
    throw new Error(reasonOf(error));
  }
}

type Dictionary = Readonly<Record<string, unknown>>;
const dictionary = (value: unknown): Dictionary =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Dictionary) : {};

/**
 * Reads the files that `curve` names, and reports what is wrong with them at the places that name them. What stands in a
 * file is never shown. Undefined: CURVE is off, or there was a problem.
 */
export function loadCurve(document: JsonDocument, options: RuleOptions): CurveDefinition | undefined {
  const curve = dictionary(dictionary(document.value).curve);
  const read = <T extends object>(name: string, parse: (text: string) => T | KeyFault): T | undefined => {
    const path = curve[name];
    if (typeof path !== 'string' || path === '') return undefined;
    const file = resolve(options.baseDirectory, path);
    const refuse = (message: string) => document.report(['curve', name], `${file}: ${message}`);
    try {
      if (options.readKeyFile === undefined) throw new Error('key files are not read here');
      const parsed = parse(options.readKeyFile(file));
      if (!('message' in parsed)) return parsed;
      refuse(`line ${parsed.line}: ${parsed.message}`);
    } catch (error) {
      refuse((error as Error).message);
    }
    return undefined;
  };
  const own = read<{ readonly key: string }>('publicKeyFile', parseKey);
  const secret = read<{ readonly key: string }>('secretKeyFile', parseKey);
  const allowed = read<{ readonly keys: readonly string[] }>('allowedKeysFile', parseKeys);
  if (allowed?.keys.length === 0) {
    document.report(['curve', 'allowedKeysFile'], 'the file has no key: nobody could come in');
  }
  if (own === undefined || secret === undefined) return undefined;
  if (publicKeyOf(secret.key) !== own.key) {
    document.report(['curve', 'secretKeyFile'], 'the secret key does not belong to the public key');
  }
  return { publicKey: own.key, secretKey: secret.key, allowedKeys: allowed?.keys };
}

/** Checks the keys of static providers: each is one, needs `curve`, and is the same wherever the address stands. */
export class ServerKeyCheck {
  readonly #seen = new Map<string, { readonly key: string; readonly at: readonly (string | number)[] }>();

  constructor(private readonly document: JsonDocument) {}

  check(value: unknown, at: readonly (string | number)[]): void {
    const { address, serverKey } = dictionary(value);
    if (typeof serverKey !== 'string') return;
    const path = [...at, 'serverKey'];
    if (curveKeyBytes(serverKey) === undefined)
      this.document.report(path, 'must be a public key of 40 characters (Z85)');
    if (!Object.hasOwn(dictionary(this.document.value), 'curve')) {
      this.document.report(path, 'a server key needs "curve": the own pair of keys');
    }
    if (typeof address !== 'string') return;
    const other = this.#seen.get(address);
    if (other === undefined) this.#seen.set(address, { key: serverKey, at: path });
    else if (other.key !== serverKey) {
      this.document.report(path, `the same address has another server key at ${this.document.placeOf(other.at)}`);
    }
  }
}

/** Server keys by address; an address that has one anywhere has it everywhere. */
export function serverKeysOf(
  lists: Iterable<'dynamic' | readonly ProviderInput[] | undefined>,
): Record<string, string> {
  const keys: Record<string, string> = {};
  for (const list of lists) {
    if (list === undefined || list === 'dynamic') continue;
    for (const entry of list) {
      if (typeof entry !== 'string' && entry.serverKey !== undefined) keys[entry.address] = entry.serverKey;
    }
  }
  return keys;
}

export const addressOf = (entry: ProviderInput): string => (typeof entry === 'string' ? entry : entry.address);
