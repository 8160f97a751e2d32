import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const proto = dirname(createRequire(import.meta.url).resolve('@trunkline/proto')).replace(/dist$/, '');

/** The golden fixtures of `proto/fixtures`, the contract for implementations in other languages. */
export function loadFixtures<T>(name: string): T[] {
  return JSON.parse(readFileSync(join(proto, 'fixtures', `${name}.json`), 'utf8'));
}

export const schemaPath = join(proto, 'schemas', 'trunkline.proto');

export const fromHex = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, 'hex'));
export const toHex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
