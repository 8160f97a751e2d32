import type { TrunklineError } from '@trunkline/proto';

/** One message on its way into a queue. */
export interface Entry {
  /** Let go once it is settled: what waits behind an older message must not keep its bytes. */
  buffer: Uint8Array;
  readonly start: number;
  readonly end: number;
  readonly deadline: number;
  sent: boolean;
  settled: boolean;
  stored(sequence: number): void;
  failed(error: TrunklineError): void;
}

/** Publishes of one code, in the order of their numbers. */
export class Backlog {
  entries: Entry[] = [];
  /** Publish number of `entries[head]`. */
  first = 1;
  head = 0;
  /** Number of the next one to be sent in this session. */
  next = 1;

  constructor(readonly code: number) {}

  get end(): number {
    return this.first + this.entries.length - this.head;
  }

  at(number: number): Entry | undefined {
    return number < this.first ? undefined : this.entries[this.head + number - this.first];
  }

  /** What is not settled yet. */
  *open(): Generator<Entry> {
    for (let index = this.head; index < this.entries.length; index++) {
      const entry = this.entries[index]!;
      if (!entry.settled) yield entry;
    }
  }

  /** Forgets what is settled at the front. */
  shift(): void {
    while (this.head < this.entries.length && this.entries[this.head]!.settled) {
      this.head++;
      this.first++;
    }
    this.next = Math.max(this.next, this.first);
    if (this.head < 1024 && this.head < this.entries.length) return;
    this.entries = this.entries.slice(this.head);
    this.head = 0;
  }
}
