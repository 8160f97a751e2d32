import { decodeParams } from '@trunkline/proto';

const utf8 = new TextDecoder('utf-8', { fatal: true });
/** Some integer may be beyond 2^53-1. */
const LONG_DIGITS = /[1-9]\d{15}/;

/**
 * A JSON body as filters see it; undefined when it is not JSON. Integers that JSON.parse would round are read again, as
 * bigints, by the slower exact reader (which reads 64 levels deep; a deeper body keeps the rounded ones).
 */
export function parseJsonBody(bytes: Uint8Array): unknown {
  let value: unknown;
  try {
    const text = utf8.decode(bytes);
    value = JSON.parse(text);
    return LONG_DIGITS.test(text) ? decodeParams(bytes) : value;
  } catch {
    return value;
  }
}
