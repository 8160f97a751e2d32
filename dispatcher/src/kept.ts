import { bodyStart, decodeMeta, metaStart, OFFSET, readU32, readU53 } from '@trunkline/proto';
import type { Keep } from './service.js';

/** What a stream keeps for late joiners (rule 9): copies of whole messages, oldest first. */
export interface Kept {
  add(buffer: Uint8Array, start: number, end: number): void;
  /** Visits the messages with a sequence above `after`. */
  visit(after: number, each: (message: Uint8Array) => void): void;
  /** Highest sequence that is neither there nor replaced by something newer; 0: none. */
  readonly dropped: number;
}

/** @param since sequence after which the keeping begins: what came before is not there */
export function createKept(keep: Keep, since: number): Kept | undefined {
  switch (keep.mode) {
    case 'none':
      return undefined;
    case 'last':
      return new Last(since);
    case 'lastPerKey':
      return new LastPerKey(keep.max, since);
    case 'ring':
      return new Ring(keep.size, since);
  }
}

const sequenceOf = (message: Uint8Array) => readU53(message, OFFSET.sequence);

/** The newest response replaces all before it, so once there is one nothing is missing. */
class Last implements Kept {
  private message: Uint8Array | undefined;

  constructor(public dropped: number) {}

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

  constructor(
    private readonly max: number,
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
    this.messages.delete(key);
    this.messages.set(key, message);
    if (this.messages.size <= this.max) return;
    const [oldest, lost] = this.messages.entries().next().value!;
    this.messages.delete(oldest);
    this.dropped = sequenceOf(lost);
  }

  visit(after: number, each: (message: Uint8Array) => void): void {
    for (const message of this.messages.values()) if (sequenceOf(message) > after) each(message);
  }
}

class Ring implements Kept {
  private readonly messages: Uint8Array[] = [];
  /** Where the oldest is once the ring is full. */
  private oldest = 0;

  constructor(
    private readonly capacity: number,
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
    if (this.messages.length < this.capacity) {
      this.messages.push(message);
      return;
    }
    this.dropped = sequenceOf(this.messages[this.oldest]!);
    this.messages[this.oldest] = message;
    this.oldest = (this.oldest + 1) % this.capacity;
  }

  visit(after: number, each: (message: Uint8Array) => void): void {
    const count = this.messages.length;
    for (let index = 0; index < count; index++) {
      const message = this.messages[(this.oldest + index) % count]!;
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
