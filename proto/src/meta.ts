import { TrunklineError } from './errors.js';
import { trunkline } from './generated/schema.js';
import { isWellFormed } from './text.js';

/** A value of an attribute. Integers beyond ±(2^53-1) are bigints; both are exact to 64 bits. */
export type AttributeValue = string | number | bigint | boolean | Uint8Array;
export type Attributes = Readonly<Record<string, AttributeValue>>;

/** What stands between header and body. Absent and empty are one: `tag` and `key` are never undefined. */
export interface Meta {
  readonly tag: string;
  readonly key: string;
  readonly attrs: Attributes;
  readonly contentType: string;
  /** Of a message in a queue: not delivered later than this after it was stored, ms. */
  readonly ttlMs?: number;
  /** Of a message in a queue: not delivered earlier than this after it was stored, ms. */
  readonly delayMs?: number;
}

/** Most bytes a meta may have (u16). */
export const MAX_META = 65535;

/** Like all attributes, these have no prototype: `constructor` is absent unless somebody sends it. */
const NO_ATTRIBUTES: Attributes = Object.freeze(Object.create(null));
export const EMPTY_META: Meta = Object.freeze({ tag: '', key: '', attrs: NO_ATTRIBUTES, contentType: '' });
const NOTHING = new Uint8Array(0);
const MIN_INT = -(2n ** 63n);
const MAX_INT = 2n ** 63n - 1n;
const MAX_UINT = 2n ** 64n - 1n;

/**
 * Attributes that are undefined or null are left out.
 * @throws TrunklineError META_INVALID: a value of another type, an integer beyond 64 bits, text that cannot be UTF-8,
 * more than MAX_META bytes
 */
export function encodeMeta(meta: Partial<Meta>): Uint8Array {
  const { tag, key, attrs, contentType } = meta;
  const timed = isTimed(meta);
  if (isAbsent(tag) && isAbsent(key) && isAbsent(attrs) && isAbsent(contentType) && !timed) return NOTHING;
  const message: trunkline.Meta.$Properties = {};
  if (!isAbsent(tag)) message.tag = text('tag', tag);
  if (!isAbsent(key)) message.key = text('key', key);
  if (!isAbsent(contentType)) message.contentType = text('contentType', contentType);
  if (!isAbsent(attrs)) message.attrs = encodeAttributes(attrs);
  if (timed) encodeTimes(message, meta);
  const bytes = trunkline.Meta.encode(message as trunkline.Meta).finish();
  if (bytes.length > MAX_META)
    throw new TrunklineError('META_INVALID', `meta has ${bytes.length} bytes, at most ${MAX_META}`);
  return bytes;
}

/** Whether a meta says something about time: its message has the flag TIMED then. */
export function isTimed({ ttlMs, delayMs }: Partial<Meta>): boolean {
  return ttlMs !== undefined || delayMs !== undefined;
}

function encodeTimes(message: trunkline.Meta.$Properties, { ttlMs, delayMs }: Partial<Meta>): void {
  if (ttlMs !== undefined) message.ttlMs = milliseconds('ttlMs', ttlMs, 1);
  if (delayMs !== undefined) message.delayMs = milliseconds('delayMs', delayMs, 0);
}

function milliseconds(field: string, value: unknown, least: number): number {
  if (Number.isSafeInteger(value) && (value as number) >= least) return value as number;
  throw new TrunklineError('META_INVALID', `${field} must be a whole number of milliseconds from ${least}`);
}

function isAbsent(value: unknown): value is undefined | null | '' {
  return value === undefined || value === null || value === '';
}

function text(field: string, value: unknown): string {
  if (typeof value !== 'string') throw new TrunklineError('META_INVALID', `${field} must be a string`);
  if (!isWellFormed(value)) throw new TrunklineError('META_INVALID', `${field} has half a surrogate pair`);
  return value;
}

function encodeAttributes(attrs: unknown): Record<string, trunkline.Value.$Properties> {
  if (typeof attrs !== 'object' || attrs === null || Array.isArray(attrs))
    throw new TrunklineError('META_INVALID', 'attrs must be an object');
  const encoded: Record<string, trunkline.Value.$Properties> = Object.create(null);
  for (const name of Object.keys(attrs)) {
    const value = (attrs as Record<string, unknown>)[name];
    if (value !== undefined && value !== null) encoded[text('an attribute name', name)] = encodeValue(name, value);
  }
  return encoded;
}

function encodeValue(name: string, value: unknown): trunkline.Value.$Properties {
  switch (typeof value) {
    case 'string':
      return { string: text(`attribute ${name}`, value) };
    case 'boolean':
      return { bool: value };
    case 'number':
      return Number.isSafeInteger(value) && !Object.is(value, -0) ? { int: value } : { double: value };
    case 'bigint':
      if (value >= MIN_INT && value <= MAX_INT) return { int: long(value) as never };
      if (value >= 0n && value <= MAX_UINT) return { uint: long(value) as never };
      throw new TrunklineError('META_INVALID', `attribute ${name} is beyond 64 bits`);
    default:
      if (value instanceof Uint8Array) return { bytes: value };
      throw new TrunklineError('META_INVALID', `attribute ${name} must be a string, number, bigint, boolean or bytes`);
  }
}

function long(value: bigint): { low: number; high: number; unsigned: boolean } {
  return {
    low: Number(BigInt.asIntN(32, value)),
    high: Number(BigInt.asIntN(32, value >> 32n)),
    unsigned: value > MAX_INT,
  };
}

/** @throws TrunklineError META_INVALID: not a Meta, or text that is not UTF-8 */
export function decodeMeta(bytes: Uint8Array, start: number, end: number): Meta {
  if (start === end) return EMPTY_META;
  let message: trunkline.Meta;
  try {
    message = trunkline.Meta.decode(bytes.subarray(start, end));
  } catch (cause) {
    throw new TrunklineError('META_INVALID', `meta cannot be decoded: ${(cause as Error).message}`, { cause });
  }
  const attrs: Record<string, AttributeValue> = Object.create(null);
  for (const name of Object.keys(message.attrs ?? {})) {
    const value = decodeValue(message.attrs[name] as trunkline.Value);
    if (value !== undefined) attrs[name] = value;
  }
  const meta = { tag: message.tag ?? '', key: message.key ?? '', attrs, contentType: message.contentType ?? '' };
  const ttlMs = Number(integer((message.ttlMs ?? 0) as never, false));
  const delayMs = Number(integer((message.delayMs ?? 0) as never, false));
  return ttlMs + delayMs === 0 ? meta : { ...meta, ...(ttlMs > 0 && { ttlMs }), ...(delayMs > 0 && { delayMs }) };
}

/** `kind` is the member of the oneof that came last, which is the one that counts; undefined when there was none. */
function decodeValue(value: trunkline.Value): AttributeValue | undefined {
  switch (value.kind) {
    case 'string':
      return value.string!;
    case 'double':
      return value.double!;
    case 'bool':
      return value.bool!;
    case 'bytes':
      return value.bytes!;
    case 'int':
      return integer(value.int as never, true);
    case 'uint':
      return integer(value.uint as never, false);
    default:
      return undefined;
  }
}

/** protobufjs gives 64-bit integers as numbers or Long objects. */
function integer(value: number | { low: number; high: number }, signed: boolean): number | bigint {
  if (typeof value === 'number') return value;
  const bits = (BigInt(value.high >>> 0) << 32n) | BigInt(value.low >>> 0);
  const exact = signed ? BigInt.asIntN(64, bits) : bits;
  return exact >= -9007199254740991n && exact <= 9007199254740991n ? Number(exact) : exact;
}
