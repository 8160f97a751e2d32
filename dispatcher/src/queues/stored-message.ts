import {
  bodyStart,
  decodeMeta,
  encodeMeta,
  Flag,
  HEADER_BYTES,
  type Meta,
  metaStart,
  OFFSET,
  readU32,
  TrunklineError,
  Type,
  writeHeader,
  writeU32,
  writeU53,
} from '@trunkline/proto';

/*
 * A message in a queue is the RESPONSE that consumers will get, with its sequence. Line and generation, which a
 * delivery gives it, hold the time it was stored in the meantime: milliseconds of the queues' time, as two u32.
 */

/** What a publisher may say about its message; everything else is the dispatcher's. */
const PUBLISHER_FLAGS = Flag.JSON | Flag.TIMED;
const NO_META: Meta = Object.freeze({ tag: '', key: '', attrs: Object.freeze(Object.create(null)), contentType: '' });

/** Makes the messages back to back in `bytes` stored ones. Returns the sequence after the last. */
export function stamp(bytes: Uint8Array, start: number, end: number, sequence: number, time: number): number {
  const low = time >>> 0;
  const high = Math.floor(time / 4294967296);
  let next = sequence;
  for (let at = start; at < end; at += readU32(bytes, at)) {
    bytes[at + OFFSET.type] = Type.RESPONSE;
    bytes[at + OFFSET.flags] = bytes[at + OFFSET.flags]! & PUBLISHER_FLAGS;
    writeU32(bytes, at + OFFSET.line, low);
    writeU53(bytes, at + OFFSET.sequence, next++);
    writeU32(bytes, at + OFFSET.generation, high);
  }
  return next;
}

export function storedAt(bytes: Uint8Array, at: number): number {
  return readU32(bytes, at + OFFSET.line) + readU32(bytes, at + OFFSET.generation) * 4294967296;
}

export function isTimed(bytes: Uint8Array, at: number): boolean {
  return (bytes[at + OFFSET.flags]! & Flag.TIMED) !== 0;
}

/** When a message may be delivered first and last, in the queues' time. */
export function timesOf(bytes: Uint8Array, at: number): { due: number; expires: number } {
  const { ttlMs = Number.POSITIVE_INFINITY, delayMs = 0 } = metaOf(bytes, at) ?? NO_META;
  const time = storedAt(bytes, at);
  return { due: time + delayMs, expires: time + ttlMs };
}

/** The meta of a message, or undefined where it cannot be read. */
export function metaOf(bytes: Uint8Array, at: number): Meta | undefined {
  try {
    return decodeMeta(bytes, metaStart(bytes, at), bodyStart(bytes, at));
  } catch {
    return undefined;
  }
}

export interface Delivery {
  readonly code: number;
  readonly line: number;
  /** How often the message was delivered, this time counted. */
  readonly count: number;
}

/** A copy of stored messages as a consumer gets them. */
export function deliveryCopy(bytes: Uint8Array, start: number, end: number, delivery: Delivery): Uint8Array {
  const copy = bytes.slice(start, end);
  const { code, line, count } = delivery;
  const flags = count > 1 ? Flag.REDELIVERED : 0;
  for (let at = 0; at < copy.length; at += readU32(copy, at)) {
    copy[at + OFFSET.flags] = copy[at + OFFSET.flags]! | flags;
    writeU32(copy, at + OFFSET.code, code);
    writeU32(copy, at + OFFSET.line, line);
    writeU32(copy, at + OFFSET.generation, count);
  }
  return copy;
}

/** The same message with more attributes, to be published into another queue. Attributes it has no room for go first. */
export function withAttributes(bytes: Uint8Array, at: number, attrs: Meta['attrs']): Uint8Array {
  const { ttlMs: _ttl, delayMs: _delay, ...meta } = metaOf(bytes, at) ?? NO_META;
  let encoded: Uint8Array;
  try {
    encoded = encodeMeta({ ...meta, attrs: { ...meta.attrs, ...attrs } });
  } catch (error) {
    if (!(error instanceof TrunklineError)) throw error;
    encoded = encodeMeta({ attrs });
  }
  const body = bytes.subarray(bodyStart(bytes, at), at + readU32(bytes, at));
  const message = new Uint8Array(HEADER_BYTES + encoded.length + body.length);
  const flags = bytes[at + OFFSET.flags]! & Flag.JSON;
  const code = readU32(bytes, at + OFFSET.code);
  writeHeader(message, 0, message.length, { type: Type.PUBLISH, code, flags, metaLength: encoded.length });
  message.set(encoded, HEADER_BYTES);
  message.set(body, HEADER_BYTES + encoded.length);
  return message;
}
