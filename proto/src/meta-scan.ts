import { keyOf } from './params.js';

/*
 * Meta: tag 0a, key 12, attrs 1a, content type 22; each is a length and as many bytes.
 */
const TAG = 0x0a;
const KEY = 0x12;
const ATTRS = 0x1a;
const CONTENT_TYPE = 0x22;

/**
 * Tag and key of a meta without what is around them: for an index that looks at nothing else. Knows the usual metas;
 * any other is for `decodeMeta`.
 */
export class MetaScan {
  private bytes: Uint8Array = NOTHING;
  private tagAt = 0;
  private tagEnd = 0;
  private keyAt = 0;
  private keyEnd = 0;
  private tagText: string | undefined;
  private keyText: string | undefined;

  /** Returns false for a meta that is not one of the usual ones; nothing was found then. */
  begin(bytes: Uint8Array, start: number, end: number): boolean {
    this.bytes = bytes;
    this.tagAt = 0;
    this.tagEnd = 0;
    this.keyAt = 0;
    this.keyEnd = 0;
    this.tagText = undefined;
    this.keyText = undefined;
    for (let at = start; at < end; ) {
      const field = bytes[at]!;
      const length = at + 1 < end ? bytes[at + 1]! : 128;
      const from = at + 2;
      const to = from + length;
      if (length > 127 || to > end) return false;
      if (field === TAG) {
        this.tagAt = from;
        this.tagEnd = to;
      } else if (field === KEY) {
        this.keyAt = from;
        this.keyEnd = to;
      } else if (field !== ATTRS && field !== CONTENT_TYPE) return false;
      at = to;
    }
    return this.isAscii(this.tagAt, this.tagEnd) && this.isAscii(this.keyAt, this.keyEnd);
  }

  private isAscii(start: number, end: number): boolean {
    for (let at = start; at < end; at++) if (this.bytes[at]! > 127) return false;
    return true;
  }

  get tag(): string {
    this.tagText ??= this.text(this.tagAt, this.tagEnd);
    return this.tagText;
  }

  get key(): string {
    this.keyText ??= this.text(this.keyAt, this.keyEnd);
    return this.keyText;
  }

  private text(start: number, end: number): string {
    return start === end ? '' : keyOf(this.bytes, start, end);
  }
}

const NOTHING = new Uint8Array(0);
