import { TrunklineError } from './errors.js';

/*
 * PROTOCOL.md §3. Little-endian; a message is header, extension, meta, body.
 *
 *   offset  0        4        5        6        7        8        12       16       24          28        30
 *           length   version  type     words    flags    code     line     sequence generation  meta len  reserved
 *           u32      u8       u8       u8       u8       u32      u32      u64      u32         u16       u16 = 0
 */
export const HEADER_BYTES = 32;
export const HEADER_WORDS = 8;
export const VERSION = 1;
export const MAX_SEQUENCE = Number.MAX_SAFE_INTEGER;

export const OFFSET = {
  length: 0,
  version: 4,
  type: 5,
  words: 6,
  flags: 7,
  code: 8,
  line: 12,
  sequence: 16,
  generation: 24,
  meta: 28,
  reserved: 30,
} as const;

/** Message types; 128..255 are the application's own. */
export const Type = {
  REQUEST: 1,
  RESPONSE: 2,
  CANCEL: 3,
  PROBE: 4,
  PROBE_REPLY: 5,
  HELLO: 16,
  WELCOME: 17,
  HEARTBEAT: 18,
  BYE: 19,
  RESET: 20,
  CREDIT: 21,
  ACCEPTED: 32,
  REFUSED: 33,
  END: 34,
  STATUS: 35,
  GAP: 36,
  OFFER: 37,
  WITHDRAW: 38,
  PUBLISH: 48,
  PUBLISHED: 49,
  ACK: 50,
  NACK: 51,
  EXTEND: 52,
  SETTLED: 53,
} as const;
export const FIRST_APPLICATION_TYPE = 128;

export const Flag = {
  SNAPSHOT: 1,
  SNAPSHOT_END: 2,
  FINAL: 4,
  REDELIVERED: 8,
  JSON: 16,
  /** The meta of a PUBLISH says something about time: ttl, delay. */
  TIMED: 32,
} as const;

const names = new Map<number, string>(Object.entries(Type).map(([name, type]) => [type, name]));

/** Name of a message type for logs and errors: `RESPONSE`, `APPLICATION(130)`, `UNKNOWN(7)`. */
export function typeName(type: number): string {
  return names.get(type) ?? (type >= FIRST_APPLICATION_TYPE ? `APPLICATION(${type})` : `UNKNOWN(${type})`);
}

const known = Uint8Array.from({ length: 256 }, (_, type) =>
  type >= FIRST_APPLICATION_TYPE || names.has(type) ? 1 : 0,
);

export function isKnownType(type: number): boolean {
  return known[type] === 1;
}

/** Data messages spend the receiver's credit; everything else is bounded by the protocol itself. PROTOCOL.md §6. */
export function isData(type: number): boolean {
  return type === Type.RESPONSE || type === Type.PUBLISH || type >= FIRST_APPLICATION_TYPE;
}

export function readU32(bytes: Uint8Array, at: number): number {
  return (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0;
}

export function readU16(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8);
}

export function writeU32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value;
  bytes[at + 1] = value >>> 8;
  bytes[at + 2] = value >>> 16;
  bytes[at + 3] = value >>> 24;
}

/** An integer ≤ 2^53-1 as two u32. */
export function writeU53(bytes: Uint8Array, at: number, value: number): void {
  writeU32(bytes, at, value >>> 0);
  writeU32(bytes, at + 4, Math.floor(value / 4294967296));
}

export function readU53(bytes: Uint8Array, at: number): number {
  const high = readU32(bytes, at + 4);
  // kept as a small integer, which takes no object of its own
  return high === 0 ? readU32(bytes, at) : readU32(bytes, at) + high * 4294967296;
}

/** Where the meta of the message that begins at `at` begins. */
export function metaStart(bytes: Uint8Array, at: number): number {
  return at + bytes[at + OFFSET.words]! * 4;
}

export function bodyStart(bytes: Uint8Array, at: number): number {
  return metaStart(bytes, at) + readU16(bytes, at + OFFSET.meta);
}

export interface Header {
  type: number;
  flags?: number;
  code?: number;
  line?: number;
  sequence?: number;
  generation?: number;
  metaLength?: number;
}

/** Writes a 32-byte header at `at` for a message of `length` bytes in all. */
export function writeHeader(bytes: Uint8Array, at: number, length: number, header: Header): void {
  writeU32(bytes, at, length);
  bytes[at + OFFSET.version] = VERSION;
  bytes[at + OFFSET.type] = header.type;
  bytes[at + OFFSET.words] = HEADER_WORDS;
  bytes[at + OFFSET.flags] = header.flags ?? 0;
  writeU32(bytes, at + OFFSET.code, header.code ?? 0);
  writeU32(bytes, at + OFFSET.line, header.line ?? 0);
  writeU53(bytes, at + OFFSET.sequence, header.sequence ?? 0);
  writeU32(bytes, at + OFFSET.generation, header.generation ?? 0);
  const metaLength = header.metaLength ?? 0;
  bytes[at + OFFSET.meta] = metaLength;
  bytes[at + OFFSET.meta + 1] = metaLength >>> 8;
  bytes[at + OFFSET.reserved] = 0;
  bytes[at + OFFSET.reserved + 1] = 0;
}

/** Why a message cannot be read; the names count in metrics. */
export type HeaderFault =
  | 'short'
  | 'length'
  | 'tooLarge'
  | 'version'
  | 'type'
  | 'headerLength'
  | 'sequence'
  | 'meta'
  | 'reserved';

/**
 * The field that makes the message at `at` unreadable, or undefined. Trusts nothing: `end` is where the batch ends and
 * `maxMessage` the largest message the session takes, in bytes.
 */
export function headerFault(bytes: Uint8Array, at: number, end: number, maxMessage: number): HeaderFault | undefined {
  if (end - at < HEADER_BYTES) return 'short';
  const length = readU32(bytes, at);
  if (length < HEADER_BYTES || length > end - at) return 'length';
  if (length > maxMessage) return 'tooLarge';
  if (bytes[at + OFFSET.version] !== VERSION) return 'version';
  if (!isKnownType(bytes[at + OFFSET.type]!)) return 'type';
  const headerLength = bytes[at + OFFSET.words]! * 4;
  if (headerLength < HEADER_BYTES || headerLength > length) return 'headerLength';
  if (bytes[at + OFFSET.sequence + 6]! > 31 || bytes[at + OFFSET.sequence + 7] !== 0) {
    // bits 53..63
    return 'sequence';
  }
  if (headerLength + readU16(bytes, at + OFFSET.meta) > length) return 'meta';
  if (bytes[at + OFFSET.reserved] !== 0 || bytes[at + OFFSET.reserved + 1] !== 0) return 'reserved';
  return undefined;
}

/**
 * Checks a whole batch before any of it is acted upon. A batch holds at least one message.
 * @throws TrunklineError BATCH_INVALID with the fault and the offset
 */
export function checkBatch(batch: Uint8Array, maxMessage: number): void {
  let at = 0;
  do {
    const fault = headerFault(batch, at, batch.length, maxMessage);
    if (fault !== undefined) throw new BatchError(fault, at);
    at += readU32(batch, at);
  } while (at < batch.length);
}

export class BatchError extends TrunklineError {
  readonly fault: HeaderFault;

  constructor(fault: HeaderFault, at: number) {
    super('BATCH_INVALID', `message at byte ${at}: bad ${fault}`);
    this.fault = fault;
  }
}

if (OFFSET.reserved + 2 !== HEADER_BYTES || HEADER_WORDS * 4 !== HEADER_BYTES) throw new Error('header table is wrong');
