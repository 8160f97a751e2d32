import { bodyStart, decodeMeta, Flag, type Meta, MetaScan, metaStart, OFFSET, readU32 } from '@trunkline/proto';
import { type FilterInput, parseJsonBody } from './filters/index.js';

/** What filters see of a message, or undefined where its meta cannot be read. Each part is read when one looks at it. */
export function readInput(buffer: Uint8Array, at: number): FilterInput | undefined {
  try {
    return new MessageInput(buffer, at);
  } catch {
    return undefined;
  }
}

class MessageInput implements FilterInput {
  /** Finds tag and key; undefined where the whole meta had to be decoded. */
  private readonly scan: MetaScan | undefined;
  private decoded: Meta | undefined;
  private parsed: unknown;
  private tried = false;

  /** @throws TrunklineError META_INVALID */
  constructor(
    private readonly buffer: Uint8Array,
    private readonly at: number,
  ) {
    const scan = new MetaScan();
    if (scan.begin(buffer, metaStart(buffer, at), bodyStart(buffer, at))) this.scan = scan;
    else this.decoded = this.decode();
  }

  private decode(): Meta {
    return decodeMeta(this.buffer, metaStart(this.buffer, this.at), bodyStart(this.buffer, this.at));
  }

  private get meta(): Meta {
    this.decoded ??= this.decode();
    return this.decoded;
  }

  get tag(): string {
    return this.scan === undefined ? this.meta.tag : this.scan.tag;
  }

  get key(): string {
    return this.scan === undefined ? this.meta.key : this.scan.key;
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
