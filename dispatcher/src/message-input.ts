import { bodyStart, decodeMeta, Flag, metaStart, OFFSET, readU32 } from '@trunkline/proto';
import { type FilterInput, parseJsonBody } from './filters/index.js';

/** What filters see of a message, or undefined where its meta cannot be read. The body is parsed when one looks at it. */
export function readInput(buffer: Uint8Array, at: number): FilterInput | undefined {
  try {
    return new MessageInput(buffer, at);
  } catch {
    return undefined;
  }
}

class MessageInput implements FilterInput {
  readonly tag: string;
  readonly key: string;
  readonly attrs: FilterInput['attrs'];
  private parsed: unknown;
  private tried = false;

  constructor(
    private readonly buffer: Uint8Array,
    private readonly at: number,
  ) {
    const meta = decodeMeta(buffer, metaStart(buffer, at), bodyStart(buffer, at));
    this.tag = meta.tag;
    this.key = meta.key;
    this.attrs = meta.attrs;
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
