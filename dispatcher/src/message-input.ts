import {
  bodyStart,
  decodeMeta,
  Flag,
  type Meta,
  MetaScan,
  metaStart,
  OFFSET,
  readU32,
  singleMessage,
  Type,
} from '@trunkline/proto';
import { type FilterInput, parseJsonBody } from './filters/index.js';

/** A message without anything. */
const EMPTY: Uint8Array = singleMessage({ type: Type.RESPONSE });

/** What filters see of a message, or undefined where its meta cannot be read. Each part is read when one looks at it. */
export function readInput(buffer: Uint8Array, at: number): FilterInput | undefined {
  const input = new MessageInput();
  return input.begin(buffer, at) ? input : undefined;
}

/** One message after the other, in the same object. */
export class MessageInput implements FilterInput {
  private buffer: Uint8Array = EMPTY;
  private at = 0;
  /** Finds tag and key, where the meta is one of the usual ones; otherwise the whole of it is decoded. */
  private readonly scan = new MetaScan();
  private scanned = false;
  private decoded: Meta | undefined;
  private parsed: unknown;
  private tried = false;

  /** Returns false where the meta cannot be read. */
  begin(buffer: Uint8Array, at: number): boolean {
    this.buffer = buffer;
    this.at = at;
    this.decoded = undefined;
    this.parsed = undefined;
    this.tried = false;
    this.scanned = this.scan.begin(buffer, metaStart(buffer, at), bodyStart(buffer, at));
    return this.scanned || this.decodes();
  }

  private decodes(): boolean {
    try {
      this.decoded = this.decode();
      return true;
    } catch {
      return false;
    }
  }

  /** Gives the bytes back. */
  finish(): void {
    this.begin(EMPTY, 0);
  }

  private decode(): Meta {
    return decodeMeta(this.buffer, metaStart(this.buffer, this.at), bodyStart(this.buffer, this.at));
  }

  private get meta(): Meta {
    this.decoded ??= this.decode();
    return this.decoded;
  }

  get tag(): string {
    return this.scanned ? this.scan.tag : this.meta.tag;
  }

  get key(): string {
    return this.scanned ? this.scan.key : this.meta.key;
  }

  /** @throws TrunklineError META_INVALID: a filter that looks at them does not match then */
  get attrs(): FilterInput['attrs'] {
    return this.meta.attrs;
  }

  get body(): unknown {
    if (!this.tried) {
      this.tried = true;
      this.parsed = this.parse();
    }
    return this.parsed;
  }

  private parse(): unknown {
    const { buffer, at } = this;
    if ((buffer[at + OFFSET.flags]! & Flag.JSON) === 0) return undefined;
    return parseJsonBody(buffer.subarray(bodyStart(buffer, at), at + readU32(buffer, at)));
  }
}
