import { TrunklineError } from '@trunkline/proto';

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true });

/** Writes the records of a store: integers as varints up to 2^53-1, text and bytes with their length in front. */
export class RecordWriter {
  private buffer = new Uint8Array(64);
  private at = 0;

  integer(value: number): this {
    this.room(8);
    let rest = value;
    while (rest > 127) {
      this.buffer[this.at++] = (rest % 128) | 128;
      rest = Math.floor(rest / 128);
    }
    this.buffer[this.at++] = rest;
    return this;
  }

  bytes(value: Uint8Array): this {
    this.integer(value.length);
    this.room(value.length);
    this.buffer.set(value, this.at);
    this.at += value.length;
    return this;
  }

  text(value: string): this {
    return this.bytes(encoder.encode(value));
  }

  finish(): Uint8Array {
    return this.buffer.slice(0, this.at);
  }

  private room(length: number): void {
    if (this.at + length <= this.buffer.length) return;
    const larger = new Uint8Array(Math.max(this.buffer.length * 2, this.at + length));
    larger.set(this.buffer);
    this.buffer = larger;
  }
}

/** Reads them. @throws TrunklineError STORE_DAMAGED from every method */
export class RecordReader {
  private at = 0;

  constructor(private readonly buffer: Uint8Array) {}

  get done(): boolean {
    return this.at >= this.buffer.length;
  }

  integer(): number {
    let value = 0;
    let factor = 1;
    for (;;) {
      const byte = this.buffer[this.at++];
      if (byte === undefined || factor > 2 ** 49) throw damaged();
      value += (byte & 127) * factor;
      if (byte < 128) break;
      factor *= 128;
    }
    if (value > Number.MAX_SAFE_INTEGER) throw damaged();
    return value;
  }

  bytes(): Uint8Array {
    const length = this.integer();
    if (length > this.buffer.length - this.at) throw damaged();
    this.at += length;
    return this.buffer.slice(this.at - length, this.at);
  }

  text(): string {
    try {
      return decoder.decode(this.bytes());
    } catch {
      throw damaged();
    }
  }
}

function damaged(): TrunklineError {
  return new TrunklineError('STORE_DAMAGED', 'a record of the store cannot be read');
}
