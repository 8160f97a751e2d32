import { keyOf, paramsKey } from './params.js';

const SCRATCH_BYTES = 1024;
/** Lengths up to here take one byte. */
const MAX_SHORT = 127;
const MAX_VARINT_BYTES = 5;

/*
 * Protobuf fields of the payloads that come by the hundred thousand, without an object in between. Both classes know
 * only the usual: where something is longer or stranger they say so, and the caller leaves it to the generated codec,
 * whose bytes and values are the same.
 */

/** Reads field after field of one payload. A value is read right after its `tag`; `odd` says that none of it counts. */
export class FieldReader {
  odd = false;
  private bytes: Uint8Array = new Uint8Array(0);
  private at = 0;
  private end = 0;

  begin(bytes: Uint8Array, start: number, end: number): void {
    this.bytes = bytes;
    this.at = start;
    this.end = end;
    this.odd = false;
  }

  /** Gives the bytes back: nothing keeps a batch alive here. */
  finish(): void {
    this.bytes = NOTHING;
  }

  get more(): boolean {
    return this.at < this.end && !this.odd;
  }

  /** Field number and wire type as they stand on the wire; of fields up to 15. */
  tag(): number {
    return this.bytes[this.at++]!;
  }

  varint(): number {
    const { bytes, end } = this;
    let value = 0;
    let scale = 1;
    for (let read = 0; read < MAX_VARINT_BYTES && this.at < end; read++) {
      const byte = bytes[this.at++]!;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
    this.odd = true;
    return 0;
  }

  u32(): number {
    const value = this.varint();
    if (value > 0xffffffff) this.odd = true;
    return value;
  }

  /** A view. */
  view(): Uint8Array {
    const length = this.length();
    if (length === 0) return NOTHING;
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  /** Bytes as `paramsKey` makes text of them. */
  key(): string {
    const length = this.length();
    this.at += length;
    return keyOf(this.bytes, this.at - length, this.at);
  }

  /** ASCII; any other text is odd. */
  text(): string {
    const bytes = this.view();
    for (let index = 0; index < bytes.length; index++) if (bytes[index]! > 127) this.odd = true;
    return paramsKey(bytes);
  }

  /** Of a field with bytes in it, which follow. */
  length(): number {
    const length = this.varint();
    if (length <= this.end - this.at) return length;
    this.odd = true;
    return 0;
  }

  /** Where the reading stands, to go into a message within the message. */
  get position(): number {
    return this.at;
  }
}

/** Writes field after field of one payload; fields with the default value are left out. */
export class FieldWriter {
  odd = false;
  private readonly bytes = new Uint8Array(SCRATCH_BYTES);
  private at = 0;

  begin(): this {
    this.at = 0;
    this.odd = false;
    return this;
  }

  /** What was written, in a buffer of its own. */
  done(): Uint8Array {
    return this.bytes.slice(0, this.at);
  }

  /** Where it was written, up to `length`; until the next `begin`. */
  get scratch(): Uint8Array {
    return this.bytes;
  }

  get length(): number {
    return this.at;
  }

  /** Zero is left out. */
  number(tag: number, value: number): this {
    if (value === 0) return this;
    if (!(value > 0 && value <= 0xffffffff) || !Number.isInteger(value) || !this.fits(MAX_VARINT_BYTES)) {
      this.odd = true;
      return this;
    }
    this.bytes[this.at++] = tag;
    let rest = value;
    while (rest > 127) {
      this.bytes[this.at++] = (rest & 127) | 128;
      rest >>>= 7;
    }
    this.bytes[this.at++] = rest;
    return this;
  }

  flag(tag: number, value: boolean): this {
    return this.number(tag, value ? 1 : 0);
  }

  /** Nothing is left out. */
  block(tag: number, value: Uint8Array): this {
    const { length } = value;
    if (length === 0 || !this.opens(tag, length)) return this;
    const { bytes } = this;
    let { at } = this;
    for (let index = 0; index < length; index++) bytes[at++] = value[index]!;
    this.at = at;
    return this;
  }

  /** ASCII, or one character for each byte where `wide`; nothing is left out. */
  text(tag: number, value: string, wide = false): this {
    const { length } = value;
    if (length === 0 || !this.opens(tag, length)) return this;
    const most = wide ? 255 : 127;
    const { bytes } = this;
    let { at } = this;
    for (let index = 0; index < length; index++) {
      const unit = value.charCodeAt(index);
      if (unit > most) this.odd = true;
      bytes[at++] = unit;
    }
    this.at = at;
    return this;
  }

  /** Begins a message within the message; `close` follows. */
  open(tag: number): number {
    if (!this.fits(2)) return this.at;
    this.bytes[this.at] = tag;
    this.at += 2;
    return this.at;
  }

  close(from: number): this {
    const length = this.at - from;
    if (length > MAX_SHORT) this.odd = true;
    else this.bytes[from - 1] = length;
    return this;
  }

  private opens(tag: number, length: number): boolean {
    if (length > MAX_SHORT || !this.fits(length + 2)) {
      this.odd = true;
      return false;
    }
    this.bytes[this.at++] = tag;
    this.bytes[this.at++] = length;
    return true;
  }

  private fits(length: number): boolean {
    if (this.at + length < SCRATCH_BYTES) return true;
    this.odd = true;
    return false;
  }
}

const NOTHING = new Uint8Array(0);
