import { decodeParams, type Meta } from '@trunkline/proto';
import type { PublishMessage } from '@trunkline/publisher/core';
import { toJson } from './json.js';

const text = new TextDecoder('utf-8', { fatal: true });
const known: readonly string[] = ['body', 'tag', 'key', 'attrs', 'contentType', 'ttlMs', 'delayMs'];
/** What `consume --json` says of a message and the queue it is published into says anew. */
const ignored: readonly string[] = ['code', 'sequence', 'generation', 'snapshot', 'deliveries'];
/** Only these may be integers that JSON.parse would round. */
const LONG_NUMBER = /\d{16}/;

/** The message that a line of JSON stands for. @throws Error what is wrong with the line */
export function publishedLine(line: Uint8Array): PublishMessage {
  const fields = parse(line);
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) throw new Error('not a JSON object');
  for (const name of Object.keys(fields)) {
    if (known.includes(name) || ignored.includes(name)) continue;
    throw new Error(`unknown field ${JSON.stringify(name)}: a message has ${known.join(', ')}`);
  }
  const given = fields as Record<string, unknown>;
  const meta: Record<string, unknown> = {};
  for (const name of known) if (name !== 'body' && given[name] !== undefined) meta[name] = given[name];
  if (meta.attrs !== undefined) meta.attrs = attributes(meta.attrs);
  return { ...(meta as Partial<Meta>), ...bodyOf(given.body) };
}

function parse(line: Uint8Array): unknown {
  let json: string;
  try {
    json = text.decode(line);
  } catch {
    throw new Error('not UTF-8');
  }
  const value: unknown = JSON.parse(json);
  // exact integers, where there may be such as a double does not hold
  return LONG_NUMBER.test(json) ? decodeParams(line) : value;
}

function bodyOf(body: unknown): { body?: unknown; json?: boolean } {
  if (body === undefined || typeof body === 'string') return { body };
  // with exact integers
  return isBase64(body) ? { body: bytesOf(body.base64) } : { body: toJson(body), json: true };
}

function attributes(attrs: unknown): unknown {
  if (typeof attrs !== 'object' || attrs === null || Array.isArray(attrs)) return attrs;
  const read = Object.entries(attrs).map(([name, value]) => [name, isBase64(value) ? bytesOf(value.base64) : value]);
  return Object.fromEntries(read);
}

function isBase64(value: unknown): value is { base64: unknown } {
  if (typeof value !== 'object' || value === null) return false;
  const names = Object.keys(value);
  return names.length === 1 && names[0] === 'base64';
}

function bytesOf(value: unknown): Uint8Array {
  if (typeof value !== 'string' || !/^[A-Za-z0-9+/]*={0,2}$/.test(value) || value.length % 4 !== 0) {
    throw new Error('"base64" is not followed by base64');
  }
  return Uint8Array.from(Buffer.from(value, 'base64'));
}
