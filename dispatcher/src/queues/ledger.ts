interface Part {
  readonly first: number;
  readonly last: number;
  readonly bytes: number;
  /** Several chunks whose borders are not known. */
  readonly coarse: boolean;
}

/** More parts than this are joined in pairs: what is known of the borders gets coarser, the sums stay exact. */
const MAX_PARTS = 4096;
/** Of a part with unknown borders this many messages are given back at a time. */
const COARSE_STEP = 1024;

/** How much of a queue is stored, by chunk. */
export class Ledger {
  private parts: Part[] = [];
  bytes = 0;

  append(first: number, last: number, bytes: number, coarse = false): void {
    this.parts.push({ first, last, bytes, coarse });
    this.bytes += bytes;
    if (this.parts.length > MAX_PARTS) this.join();
  }

  /** Half as many parts, those that were joined before too: an append costs the same however many chunks there are. */
  private join(): void {
    const joined: Part[] = [];
    for (let index = 0; index < this.parts.length; index += 2) {
      const part = this.parts[index]!;
      const next = this.parts[index + 1];
      if (next === undefined) joined.push(part);
      else joined.push({ first: part.first, last: next.last, bytes: part.bytes + next.bytes, coarse: true });
    }
    this.parts = joined;
  }

  /** Last sequence of the oldest chunk that is not the only one. */
  get oldestEnd(): number | undefined {
    const oldest = this.parts[0];
    if (oldest === undefined) return undefined;
    if (oldest.coarse && oldest.last - oldest.first >= COARSE_STEP) return oldest.first + COARSE_STEP - 1;
    return this.parts.length > 1 ? oldest.last : undefined;
  }

  /** Whether something of the store can be given back when everything up to `floor` is not needed any more. */
  isWorthTrimming(floor: number): boolean {
    const oldest = this.parts[0];
    if (oldest === undefined || floor < oldest.first) return false;
    return oldest.last <= floor || (oldest.coarse && floor - oldest.first + 1 >= COARSE_STEP);
  }

  trim(floor: number): void {
    let gone = 0;
    while (gone < this.parts.length && this.parts[gone]!.last <= floor) this.bytes -= this.parts[gone++]!.bytes;
    if (gone > 0) this.parts.splice(0, gone);
    const oldest = this.parts[0];
    if (oldest === undefined || !oldest.coarse || floor < oldest.first) return;
    // an estimate: messages of about the same size
    const share = (floor - oldest.first + 1) / (oldest.last - oldest.first + 1);
    const bytes = Math.floor(oldest.bytes * share);
    this.bytes -= bytes;
    this.parts[0] = { ...oldest, first: floor + 1, bytes: oldest.bytes - bytes };
  }

  clear(): void {
    this.parts = [];
    this.bytes = 0;
  }
}
