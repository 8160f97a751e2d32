import { type AttributeValue, decodeParams, TrunklineError } from '@trunkline/proto';
import type { RespondOptions, Subscription } from '@trunkline/publisher';

const OPENING_BRACE = 0x7b;
/** An integer that JSON.parse may round. */
const longDigits = /\d{16}/;
const MAX_UINT = 2n ** 64n - 1n;
const MIN_INT = -(2n ** 63n);

/**
 * Sends a line of output. One that is a JSON object becomes a JSON body, as it stands, with its scalar fields as
 * attributes and the texts `key` and `tag` as key and tag, too; any other line is text.
 * Returns whether it was taken. @throws TrunklineError MESSAGE_TOO_LARGE
 */
export function respondLine(subscription: Subscription, line: Uint8Array): boolean {
  const fields = objectOf(line);
  if (fields === undefined) return subscription.respond(line);
  try {
    return subscription.respond(line, { json: true, ...metaOf(fields) });
  } catch (error) {
    // more than a meta can carry: the body has it all anyway
    if (error instanceof TrunklineError && error.code === 'META_INVALID')
      return subscription.respond(line, { json: true });
    throw error;
  }
}

function objectOf(line: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  if (line.find((byte) => byte !== 0x20 && byte !== 0x09) !== OPENING_BRACE) return undefined;
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(line);
    const value = JSON.parse(text) as Readonly<Record<string, unknown>>;
    return longDigits.test(text) ? exact(line, value) : value;
  } catch {
    return undefined;
  }
}

/** With integers to their last digit, unless the object is nested beyond what is read so. */
function exact(line: Uint8Array, value: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  try {
    return decodeParams(line) as Readonly<Record<string, unknown>>;
  } catch {
    return value;
  }
}

function metaOf(fields: Readonly<Record<string, unknown>>): Pick<RespondOptions, 'attrs' | 'key' | 'tag'> {
  const attrs: Record<string, AttributeValue> = Object.create(null);
  for (const [name, value] of Object.entries(fields)) if (isAttribute(value)) attrs[name] = value;
  const { key, tag } = fields;
  return {
    attrs,
    ...(typeof key === 'string' ? { key } : {}),
    ...(typeof tag === 'string' ? { tag } : {}),
  };
}

function isAttribute(value: unknown): value is AttributeValue {
  if (typeof value === 'bigint') return value >= MIN_INT && value <= MAX_UINT;
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}
