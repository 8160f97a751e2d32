import { copyBytes } from './copy-bytes.js';
import { TrunklineError } from './errors.js';
import {
  bodyStart,
  Flag,
  HEADER_BYTES,
  type Header,
  metaStart,
  OFFSET,
  readU32,
  readU53,
  writeHeader,
} from './header.js';
import { decodeMeta, EMPTY_META, encodeMeta, isTimed, type Meta } from './meta.js';
import { MetaWriter } from './meta-writer.js';
import { isWellFormed } from './text.js';

const NOTHING = new Uint8Array(0);
const encoder = new TextEncoder();
/** Fatal: text that is not UTF-8 is an error of the one message that has it, never a replacement character. */
const exactText = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const jsonText = new TextDecoder('utf-8', { fatal: true });

/** Strings whose UTF-8 surely fits are encoded here, so that a message allocates nothing of its own. */
const SCRATCH_BYTES = 65536;

/**
 * Encodes meta and body of one message after the other. A body is nothing (undefined), bytes (as they are), a string
 * (UTF-8) or anything else (JSON, flagged so).
 */
export class MessageEncoder {
  /** Flags that the last message asks for: JSON, TIMED or none. */
  flags = 0;
  metaLength = 0;
  private bodyLength = 0;
  private meta: Uint8Array = NOTHING;
  /** The body as bytes, or undefined: then it is in the scratch. */
  private body: Uint8Array | undefined = NOTHING;
  private readonly scratch = new Uint8Array(SCRATCH_BYTES);
  private readonly metas = new MetaWriter();

  /**
   * Returns the bytes of meta and body together; `write` writes them, until the next `encode`.
   * @throws TrunklineError META_INVALID, BODY_INVALID; nothing is left of the message then
   */
  encode(body: unknown, meta: Partial<Meta> = EMPTY_META): number {
    // the application's own code (toJSON, getters) runs before anything is kept here: it may encode something itself
    const content = typeof body === 'string' || body === undefined ? body : (asBytes(body) ?? toJson(body));
    this.encodeMeta(meta);
    this.flags = (typeof content === 'string' && content !== body ? Flag.JSON : 0) | (isTimed(meta) ? Flag.TIMED : 0);
    if (typeof content === 'string') this.takeText(content);
    else this.take(content ?? NOTHING);
    return this.metaLength + this.bodyLength;
  }

  /** Writes meta and body at `at`. Bytes given as a body are read only now. */
  write(target: Uint8Array, at: number): void {
    if (this.metaLength > 0) copyBytes(this.meta, this.metaLength, target, at);
    copyBytes(this.body ?? this.scratch, this.bodyLength, target, at + this.metaLength);
    this.body = NOTHING;
  }

  private take(bytes: Uint8Array): void {
    this.body = bytes;
    this.bodyLength = bytes.length;
  }

  private takeText(text: string): void {
    const { length } = text;
    if (length > SCRATCH_BYTES / 3) {
      this.take(encoder.encode(text));
    } else {
      this.body = undefined;
      this.bodyLength = encoder.encodeInto(text, this.scratch).written;
    }
    // ASCII is as long as its text; anything else may be ill-formed
    if (this.bodyLength !== length && !isWellFormed(text)) {
      throw new TrunklineError('BODY_INVALID', 'text with half a surrogate pair');
    }
  }

  private encodeMeta(meta: Partial<Meta>): void {
    const length = this.metas.write(meta);
    const bytes = length < 0 ? encodeMeta(meta) : this.metas.bytes;
    this.meta = bytes;
    this.metaLength = length < 0 ? bytes.length : length;
  }
}

function asBytes(body: unknown): Uint8Array | undefined {
  if (body instanceof Uint8Array) return body;
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  return body instanceof ArrayBuffer ? new Uint8Array(body) : undefined;
}

function toJson(body: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(body);
  } catch (cause) {
    throw new TrunklineError('BODY_INVALID', `body is no JSON: ${(cause as Error).message}`, { cause });
  }
  if (text === undefined) throw new TrunklineError('BODY_INVALID', `body must not be a ${typeof body}`);
  return text;
}

const single = new MessageEncoder();

/** The bytes of a body, and the flags that go with them. @throws TrunklineError BODY_INVALID */
export function encodeBody(body: unknown): { bytes: Uint8Array; flags: number } {
  const bytes = new Uint8Array(single.encode(body));
  single.write(bytes, 0);
  return { bytes, flags: single.flags };
}

/** A whole message in a buffer of its own. @throws TrunklineError META_INVALID, BODY_INVALID */
export function encodeMessage(header: Header, body?: unknown, meta?: Partial<Meta>): Uint8Array {
  const message = new Uint8Array(HEADER_BYTES + single.encode(body, meta));
  const flags = (header.flags ?? 0) | single.flags;
  writeHeader(message, 0, message.length, { ...header, flags, metaLength: single.metaLength });
  single.write(message, HEADER_BYTES);
  return message;
}

/**
 * A received data message: RESPONSE, PUBLISH or one of the application's own. A view of its batch, decoded where it
 * is read; kept, it keeps the whole batch in memory.
 */
export class DataMessage {
  #meta: Meta | undefined;

  constructor(
    readonly batch: Uint8Array,
    /** Where in the batch it begins. */
    readonly at: number,
  ) {}

  /** Length with header, bytes. */
  get length(): number {
    return readU32(this.batch, this.at);
  }

  get type(): number {
    return this.batch[this.at + OFFSET.type]!;
  }

  get flags(): number {
    return this.batch[this.at + OFFSET.flags]!;
  }

  get code(): number {
    return readU32(this.batch, this.at + OFFSET.code);
  }

  get line(): number {
    return readU32(this.batch, this.at + OFFSET.line);
  }

  get sequence(): number {
    return readU53(this.batch, this.at + OFFSET.sequence);
  }

  get generation(): number {
    return readU32(this.batch, this.at + OFFSET.generation);
  }

  get final(): boolean {
    return (this.flags & Flag.FINAL) !== 0;
  }

  /** Whether the sender encoded the body as JSON. */
  get isJson(): boolean {
    return (this.flags & Flag.JSON) !== 0;
  }

  /** @throws TrunklineError META_INVALID, at every call */
  get meta(): Meta {
    this.#meta ??= decodeMeta(this.batch, metaStart(this.batch, this.at), bodyStart(this.batch, this.at));
    return this.#meta;
  }

  get tag(): string {
    return this.meta.tag;
  }

  get key(): string {
    return this.meta.key;
  }

  get attrs(): Meta['attrs'] {
    return this.meta.attrs;
  }

  get contentType(): string {
    return this.meta.contentType;
  }

  /** The body as it is, possibly empty; a view, not a copy. */
  get body(): Uint8Array {
    return this.batch.subarray(bodyStart(this.batch, this.at), this.at + this.length);
  }

  /** @throws TrunklineError BODY_INVALID: not UTF-8 */
  text(): string {
    return decodeText(exactText, this.body);
  }

  /** The body read as JSON, whatever its flag says; undefined when it is empty. @throws TrunklineError BODY_INVALID */
  json(): unknown {
    return decodeJson(this.body);
  }
}

/** @throws TrunklineError BODY_INVALID */
export function decodeJson(bytes: Uint8Array): unknown {
  if (bytes.length === 0) return undefined;
  const text = decodeText(jsonText, bytes);
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new TrunklineError('BODY_INVALID', `body is no JSON: ${(cause as Error).message}`, { cause });
  }
}

function decodeText(decoder: typeof exactText, bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch (cause) {
    throw new TrunklineError('BODY_INVALID', 'body is not UTF-8', { cause });
  }
}
