import { TrunklineError } from './errors.js';
import { isWellFormed } from './text.js';

/** Deepest nesting of objects and arrays in params. A cycle is nested without end, so this catches cycles too. */
export const MAX_PARAMS_DEPTH = 64;

/** Up to this many characters a loop is faster than the encoder. */
const SHORT_TEXT = 64;

const utf8 = new TextEncoder();
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The bytes that, with the service code, are a request's identity (rule 1). No params are no bytes, a Uint8Array is
 * copied as it is, anything else becomes canonical JSON (RFC 8785): members sorted, those that are undefined left out.
 * A bigint becomes its exact digits, so 1n and 1 are one; a number beyond ±(2^53-1) becomes what JavaScript prints.
 * @throws TrunklineError PARAMS_INVALID: what JSON cannot tell apart or cannot say (NaN, functions, symbols, an
 * undefined element, a Map or bytes inside), text that is not well-formed, nesting deeper than MAX_PARAMS_DEPTH
 */
export function encodeParams(value: unknown): Uint8Array {
  if (value === undefined) return new Uint8Array(0);
  if (value instanceof Uint8Array) return new Uint8Array(value);
  return encodeText(paramsText(value));
}

/** As `encodeParams`, but text that is ASCII stays text: it takes a tenth of the memory that a small array of bytes does. */
export function packParams(value: unknown): Uint8Array | string {
  if (value === undefined || value instanceof Uint8Array) return encodeParams(value);
  const text = paramsText(value);
  return isAscii(text) ? text : utf8.encode(text);
}

function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > 127) return false;
  return true;
}

function paramsText(value: unknown): string {
  try {
    return flatObject(value) ?? canonical(value, '', 0);
  } catch (error) {
    if (error instanceof TrunklineError) throw error;
    throw new TrunklineError('PARAMS_INVALID', `params cannot be read: ${String(error)}`, { cause: error });
  }
}

/** The usual params, without a walk: an object of plain values whose members are sorted already. */
function flatObject(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype)
    return undefined;
  if (Symbol.toStringTag in value) return undefined;
  let before = '';
  for (const name of Object.keys(value)) {
    const member = (value as Record<string, unknown>)[name];
    const plainly =
      typeof member === 'number'
        ? Number.isFinite(member)
        : typeof member === 'boolean' || member === null || (typeof member === 'string' && isWellFormed(member));
    if (!plainly || name < before || !isWellFormed(name)) return undefined;
    before = name;
  }
  return JSON.stringify(value);
}

function encodeText(text: string): Uint8Array {
  if (text.length > SHORT_TEXT) return utf8.encode(text);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit > 127) return utf8.encode(text);
    bytes[at] = unit;
  }
  return bytes;
}

function canonical(given: unknown, path: string, depth: number): string {
  const value = plain(given);
  switch (typeof value) {
    case 'string':
      return text(value, path);
    case 'number':
      if (!Number.isFinite(value)) throw invalid(path, `${value} is no JSON number`);
      return value === 0 ? '0' : String(value);
    case 'boolean':
    case 'bigint':
      return String(value);
    case 'object': {
      if (value === null) return 'null';
      if (depth === MAX_PARAMS_DEPTH) throw invalid(path, `nested deeper than ${MAX_PARAMS_DEPTH}, or in a cycle`);
      if (Array.isArray(value)) {
        // not map, which leaves holes out
        const elements = Array.from(value, (element, index) => canonical(element, `${path}/${index}`, depth + 1));
        return `[${elements.join(',')}]`;
      }
      return canonicalObject(value, path, depth);
    }
    default:
      throw invalid(path, `${typeof value} is not JSON`);
  }
}

function canonicalObject(value: object, path: string, depth: number): string {
  // a Map, a Set or a typed array would all read as {} or as numbered members
  const kind = Object.prototype.toString.call(value);
  if (kind !== '[object Object]') throw invalid(path, `${kind.slice(8, -1)} is not JSON`);
  const members: string[] = [];
  for (const name of Object.keys(value).sort()) {
    const member = plain((value as Record<string, unknown>)[name]);
    if (member === undefined) continue;
    const at = `${path}/${name}`;
    members.push(`${text(name, at)}:${canonical(member, at, depth + 1)}`);
  }
  return `{${members.join(',')}}`;
}

/** What stands for the value in JSON; a Date is its text. */
function plain(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const { toJSON } = value as { toJSON?: unknown };
  return typeof toJSON === 'function' ? toJSON.call(value) : value;
}

function text(value: string, path: string): string {
  if (!isWellFormed(value)) throw invalid(path, 'text with half a surrogate pair');
  return JSON.stringify(value);
}

function invalid(path: string, why: string): TrunklineError {
  return new TrunklineError('PARAMS_INVALID', `params${path === '' ? '' : ` at ${path}`}: ${why}`);
}

/**
 * Reads params that are JSON; no bytes are undefined. As in attributes, an integer beyond ±(2^53-1) is a bigint, so
 * that what was read encodes to the same bytes again.
 * @throws TrunklineError PARAMS_INVALID: not JSON, not UTF-8, a number beyond a double's range, nesting deeper than MAX_PARAMS_DEPTH
 */
export function decodeParams(bytes: Uint8Array): unknown {
  if (bytes.length === 0) return undefined;
  let json: string;
  try {
    json = strictUtf8.decode(bytes);
  } catch (cause) {
    throw new TrunklineError('PARAMS_INVALID', 'params are not UTF-8', { cause });
  }
  return new JsonReader(json).read();
}

const TOKEN = /[\t\n\r ]*(?:([[\]{},:"])|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)|(true|false|null))/y;
const END = /[\t\n\r ]*$/y;

/** JSON.parse rounds large integers and shows nobody their digits, so JSON is read here, with the same grammar. */
class JsonReader {
  readonly #json: string;
  #at = 0;
  /** The token read last: its punctuation mark, or its value. */
  #mark: string | undefined;
  #value: unknown;

  constructor(json: string) {
    this.#json = json;
  }

  read(): unknown {
    this.#next();
    const value = this.#read(0);
    END.lastIndex = this.#at;
    if (!END.test(this.#json)) throw this.#invalid();
    return value;
  }

  #next(): void {
    TOKEN.lastIndex = this.#at;
    const found = TOKEN.exec(this.#json);
    if (found === null) throw this.#invalid();
    this.#at = TOKEN.lastIndex;
    const [, mark, number, word] = found;
    this.#mark = mark === '"' ? undefined : mark;
    if (mark === '"') this.#value = this.#readString();
    else if (number !== undefined) this.#value = exact(number);
    else if (word !== undefined) this.#value = JSON.parse(word);
  }

  /** From behind its opening quote. */
  #readString(): string {
    const start = this.#at - 1;
    let quote = start;
    do {
      quote = this.#json.indexOf('"', quote + 1);
      if (quote < 0) throw this.#invalid();
    } while (isEscaped(this.#json, quote));
    this.#at = quote + 1;
    try {
      return JSON.parse(this.#json.slice(start, this.#at));
    } catch {
      throw this.#invalid();
    }
  }

  /** The value that begins with the token read last. */
  #read(depth: number): unknown {
    if (this.#mark === undefined) return this.#value;
    if (depth === MAX_PARAMS_DEPTH) throw new TrunklineError('PARAMS_INVALID', 'params are nested too deep');
    if (this.#mark === '[') return this.#readArray(depth);
    if (this.#mark === '{') return this.#readObject(depth);
    throw this.#invalid();
  }

  #readArray(depth: number): unknown[] {
    const array: unknown[] = [];
    this.#next();
    if (this.#mark === ']') return array;
    for (;;) {
      array.push(this.#read(depth + 1));
      this.#next();
      if (this.#mark === ']') return array;
      if (this.#mark !== ',') throw this.#invalid();
      this.#next();
    }
  }

  #readObject(depth: number): object {
    const object = {};
    this.#next();
    if (this.#mark === '}') return object;
    for (;;) {
      const name = this.#value;
      if (this.#mark !== undefined || typeof name !== 'string') throw this.#invalid();
      this.#next();
      if (this.#mark !== ':') throw this.#invalid();
      this.#next();
      const value = this.#read(depth + 1);
      // assignment to `__proto__` would set the prototype
      Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
      this.#next();
      if (this.#mark === '}') return object;
      if (this.#mark !== ',') throw this.#invalid();
      this.#next();
    }
  }

  #invalid(): TrunklineError {
    return new TrunklineError('PARAMS_INVALID', `params are not JSON, near character ${this.#at}`);
  }
}

function isEscaped(json: string, at: number): boolean {
  let slashes = 0;
  while (json[at - 1 - slashes] === '\\') slashes++;
  return slashes % 2 === 1;
}

function exact(literal: string): number | bigint {
  const value = Number(literal);
  if (!Number.isSafeInteger(value) && /^-?\d+$/.test(literal)) return BigInt(literal);
  if (!Number.isFinite(value)) throw new TrunklineError('PARAMS_INVALID', 'params hold a number out of range');
  return value;
}

/** Characters given to `String.fromCharCode` at once: below what any engine takes as arguments. */
const CHUNK = 4096;

/** The bytes as text for a Map key, one character each, so that equal keys are equal bytes. */
export function paramsKey(bytes: Uint8Array): string {
  if (bytes.length <= CHUNK) return String.fromCharCode.apply(null, bytes as unknown as number[]);
  let key = '';
  for (let at = 0; at < bytes.length; at += CHUNK) key += paramsKey(bytes.subarray(at, at + CHUNK));
  return key;
}

const SHORT_KEY = 64;
/** By length: arrays, unlike views, become arguments without an object for each call. */
const units: number[][] = Array.from({ length: SHORT_KEY + 1 }, (_, length) => new Array<number>(length).fill(0));

/** As `paramsKey` of the bytes from `start` to `end`, without a view of them where they are few. */
export function keyOf(bytes: Uint8Array, start: number, end: number): string {
  const list = units[end - start];
  if (list === undefined) return paramsKey(bytes.subarray(start, end));
  for (let index = 0; index < list.length; index++) list[index] = bytes[start + index]!;
  return String.fromCharCode.apply(null, list);
}

/** The bytes that `paramsKey` made the key of. @throws TrunklineError PARAMS_INVALID for any other text */
export function keyBytes(key: string): Uint8Array {
  const bytes = new Uint8Array(key.length);
  for (let at = 0; at < key.length; at++) {
    const code = key.charCodeAt(at);
    if (code > 255) throw new TrunklineError('PARAMS_INVALID', 'not a key of params');
    bytes[at] = code;
  }
  return bytes;
}
