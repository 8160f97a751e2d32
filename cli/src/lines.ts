/** Cuts a stream of bytes into lines without their line feeds. */
export class LineSplitter {
  private parts: Uint8Array[] = [];
  private size = 0;

  constructor(
    /** Most bytes of a line. */
    private readonly limit: number,
  ) {}

  /** The lines that this chunk completes. @throws RangeError a line is longer than the limit */
  push(chunk: Uint8Array): Uint8Array[] {
    const lines: Uint8Array[] = [];
    let start = 0;
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, start)) {
      lines.push(this.complete(chunk.subarray(start, end)));
      start = end + 1;
    }
    if (start < chunk.length) this.keep(chunk.subarray(start));
    return lines;
  }

  /** What follows the last line feed, if anything does. */
  rest(): Uint8Array | undefined {
    return this.size === 0 ? undefined : this.complete(new Uint8Array(0));
  }

  private keep(part: Uint8Array): void {
    this.parts.push(part);
    this.size += part.length;
    if (this.size > this.limit) throw new RangeError(`a line is longer than ${this.limit} bytes`);
  }

  private complete(part: Uint8Array): Uint8Array {
    if (this.size === 0 && part.length <= this.limit) return part;
    this.keep(part);
    const line = Buffer.concat(this.parts, this.size);
    this.parts = [];
    this.size = 0;
    return line;
  }
}
