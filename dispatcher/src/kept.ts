import { bodyStart, decodeMeta, metaStart, OFFSET, readU32, readU53 } from '@trunkline/proto';
import type { Keep } from './service.js';

/** What a stream keeps for late joiners (rule 9): copies of whole messages, oldest first. */
export interface Kept {
  /** What it was made for. */
  readonly keep: Keep;
  readonly maxBytes: number;
  add(buffer: Uint8Array, start: number, end: number): void;
  /** Visits the messages with a sequence above `after`. */
  visit(after: number, each: (message: Uint8Array) => void): void;
  /** Highest sequence that is neither there nor replaced by something newer; 0: none. */
  readonly dropped: number;
}

/**
 * @param maxBytes most bytes that are kept, of the newest (`last` is one message, however large)
 * @param since sequence after which the keeping begins: what came before is not there
 */
export function createKept(keep: Keep, maxBytes: number, since: number): Kept | undefined {
  switch (keep.mode) {
    case 'none':
      return undefined;
    case 'last':
      return new Last(keep, maxBytes, since);
    case 'lastPerKey':
      return new LastPerKey(keep, keep.max, maxBytes, since);
    case 'ring':
      return new Ring(keep, keep.size, maxBytes, since);
  }
}

/** Whether it is what `createKept` would make. */
export function keepsAs(kept: Kept | undefined, keep: Keep, maxBytes: number): boolean {
  if (kept === undefined) return keep.mode === 'none';
  return kept.maxBytes === maxBytes && JSON.stringify(kept.keep) === JSON.stringify(keep);
}

const sequenceOf = (message: Uint8Array) => readU53(message, OFFSET.sequence);

/** The newest response replaces all before it, so once there is one nothing is missing. */
class Last implements Kept {
  private message: Uint8Array | undefined;

  constructor(
    readonly keep: Keep,
    readonly maxBytes: number,
    public dropped: number,
  ) {}

  add(buffer: Uint8Array, start: number, end: number): void {
    let at = start;
    for (let next = at + readU32(buffer, at); next < end; next = at + readU32(buffer, at)) at = next;
    this.message = buffer.slice(at, end);
    this.dropped = 0;
  }

  visit(after: number, each: (message: Uint8Array) => void): void {
    if (this.message !== undefined && sequenceOf(this.message) > after) each(this.message);
  }
}

class LastPerKey implements Kept {
  /** In the order of their sequences. */
  private readonly messages = new Map<string, Uint8Array>();
  private bytes = 0;

  constructor(
    readonly keep: Keep,
    private readonly max: number,
    readonly maxBytes: number,
    public dropped: number,
  ) {}

  add(buffer: Uint8Array, start: number, end: number): void {
    for (let at = start; at < end; ) {
      const next = at + readU32(buffer, at);
      this.put(keyOf(buffer, at), buffer.slice(at, next));
      at = next;
    }
  }

  private put(key: string, message: Uint8Array): void {
    this.bytes += message.length - (this.messages.get(key)?.length ?? 0);
    this.messages.delete(key);
    this.messages.set(key, message);
    while (this.messages.size > this.max || this.bytes > this.maxBytes) {
      const [oldest, lost] = this.messages.entries().next().value!;
      this.messages.delete(oldest);
      this.bytes -= lost.length;
      this.dropped = sequenceOf(lost);
    }
  }

  visit(after: number, each: (message: Uint8Array) => void): void {
    for (const message of this.messages.values()) if (sequenceOf(message) > after) each(message);
  }
}

/** Dropped messages at the front of a ring before their places are given back. */
const CUT_FROM = 64;
const GONE = new Uint8Array(0);

class Ring implements Kept {
  private messages: Uint8Array[] = [];
  /** Where the oldest is; before it are places of dropped ones. */
  private oldest = 0;
  private bytes = 0;

  constructor(
    readonly keep: Keep,
    private readonly capacity: number,
    readonly maxBytes: number,
    public dropped: number,
  ) {}

  add(buffer: Uint8Array, start: number, end: number): void {
    for (let at = start; at < end; ) {
      const next = at + readU32(buffer, at);
      this.put(buffer.slice(at, next));
      at = next;
    }
  }

  private put(message: Uint8Array): void {
    this.messages.push(message);
    this.bytes += message.length;
    while (this.messages.length - this.oldest > this.capacity || this.bytes > this.maxBytes) this.drop();
    if (this.oldest < CUT_FROM || this.oldest * 2 < this.messages.length) return;
    this.messages = this.messages.slice(this.oldest);
    this.oldest = 0;
  }

  private drop(): void {
    const lost = this.messages[this.oldest]!;
    this.messages[this.oldest++] = GONE;
    this.bytes -= lost.length;
    this.dropped = sequenceOf(lost);
  }

  visit(after: number, each: (message: Uint8Array) => void): void {
    for (let index = this.oldest; index < this.messages.length; index++) {
      const message = this.messages[index]!;
      if (sequenceOf(message) > after) each(message);
    }
  }
}

/** Responses without a key, or with a meta that cannot be read, share the empty one. */
export function keyOf(buffer: Uint8Array, at: number): string {
  try {
    return decodeMeta(buffer, metaStart(buffer, at), bodyStart(buffer, at)).key;
  } catch {
    return '';
  }
}
