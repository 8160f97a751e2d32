import { createPrivateKey, createPublicKey } from 'node:crypto';

/** Why a text has no keys in it; never shows what stands there, which may be a secret key in the wrong place. */
export type KeyFault = { readonly line: number; readonly message: string };

const digits = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#';
const KEY_BYTES = 32;
const KEY_TEXT = 40;

/** Z85 (ZeroMQ RFC 32) of a length that is a multiple of 4. */
export function z85(bytes: Uint8Array): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let text = '';
  for (let offset = 0; offset < bytes.length; offset += 4) {
    const value = view.getUint32(offset);
    for (const unit of [52200625, 614125, 7225, 85, 1]) text += digits[Math.floor(value / unit) % 85];
  }
  return text;
}

/** The 32 bytes of a key in Z85; undefined for anything that is no such key. */
export function curveKeyBytes(text: unknown): Uint8Array | undefined {
  if (typeof text !== 'string' || text.length !== KEY_TEXT) return undefined;
  const bytes = new Uint8Array(KEY_BYTES);
  const view = new DataView(bytes.buffer);
  for (let group = 0; group < KEY_BYTES / 4; group++) {
    let value = 0;
    for (const digit of text.slice(group * 5, group * 5 + 5)) {
      const place = digits.indexOf(digit);
      if (place < 0) return undefined;
      value = value * 85 + place;
    }
    if (value > 0xffff_ffff) return undefined;
    view.setUint32(group * 4, value);
  }
  return bytes;
}

/** What stands before the bytes of an X25519 key in PKCS #8, and in the SubjectPublicKeyInfo of its public one. */
const pkcs8 = Buffer.from('302e020100300506032b656e04220420', 'hex');
const PUBLIC_PREFIX = 12;

/** The public key that belongs to a secret one; undefined if that is no key. */
export function publicKeyOf(secretKey: unknown): string | undefined {
  const bytes = curveKeyBytes(secretKey);
  if (bytes === undefined) return undefined;
  const key = createPrivateKey({ key: Buffer.concat([pkcs8, bytes]), format: 'der', type: 'pkcs8' });
  return z85(createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(PUBLIC_PREFIX));
}

/**
 * The keys of a key file: one a line, empty lines and lines that begin with `#` are left out, and so is what follows
 * a key behind white space and `#`. No key begins with `#`: it would stand for more than 32 bits.
 */
export function parseKeys(text: string): { readonly keys: readonly string[] } | KeyFault {
  const keys: string[] = [];
  for (const [index, line] of text
    .replace(/^\ufeff/, '')
    .split(/\r\n|\n|\r/)
    .entries()) {
    const [first, rest] = divided(line.trim());
    if (curveKeyBytes(first) !== undefined && (rest === '' || rest.startsWith('#'))) keys.push(first);
    else if (first !== '' && !first.startsWith('#')) {
      return { line: index + 1, message: 'this is no key of 40 characters (Z85)' };
    }
  }
  return { keys };
}

function divided(line: string): [string, string] {
  const end = line.search(/\s/);
  return end < 0 ? [line, ''] : [line.slice(0, end), line.slice(end).trim()];
}

/** The only key of a key file. */
export function parseKey(text: string): { readonly key: string } | KeyFault {
  const parsed = parseKeys(text);
  if (!('keys' in parsed)) return parsed;
  const [key] = parsed.keys;
  if (key !== undefined && parsed.keys.length === 1) return { key };
  return { line: 1, message: `the file has ${parsed.keys.length} keys instead of one` };
}
