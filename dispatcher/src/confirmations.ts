import { type Flushable, payload, type Session, Type } from '@trunkline/proto';
import type { Peer } from './peer.js';
import type { Confirm, PublishRefusal } from './queues/index.js';

/** Most of one PUBLISHED: numbers, three for each range, and refusals. */
const MAX_STORED = 3 * 256;
const MAX_REFUSED = 64;

/** PUBLISHED for one session, code and publisher: what comes in one step is one message. */
export class Confirmations implements Flushable, Confirm {
  private stores: number[] = [];
  private refusals: (PublishRefusal & { first: number; count: number })[] = [];
  private dirty = false;

  constructor(
    private readonly peer: Peer,
    private readonly code: number,
    private readonly line: number,
  ) {}

  stored(number: number, count: number, sequence: number): void {
    const { stores } = this;
    const last = stores.length - 3;
    if (
      last >= 0 &&
      stores[last]! + stores[last + 1]! === number &&
      stores[last + 2]! + stores[last + 1]! === sequence
    ) {
      stores[last + 1]! += count;
    } else {
      stores.push(number, count, sequence);
    }
    this.touch();
  }

  refused(number: number, count: number, { code, message, retryable }: PublishRefusal): void {
    const last = this.refusals[this.refusals.length - 1];
    if (last !== undefined && last.code === code && last.message === message && last.first + last.count === number) {
      last.count += count;
    } else {
      this.refusals.push({ first: number, count, code, message, retryable });
    }
    this.touch();
  }

  private touch(): void {
    if (this.dirty) return;
    this.dirty = true;
    this.peer.core.context.flusher.add(this);
  }

  flush(): void {
    this.dirty = false;
    const { stores, refusals, code, line } = this;
    this.stores = [];
    this.refusals = [];
    // in pieces, so that no peer gets a longer message than it takes
    for (let at = 0, from = 0; at < stores.length || from < refusals.length; at += MAX_STORED, from += MAX_REFUSED) {
      const stored = stores.slice(at, at + MAX_STORED);
      const refused = refusals.slice(from, from + MAX_REFUSED);
      this.peer.session.send({ type: Type.PUBLISHED, code, line }, payload.published.encode({ stored, refused }));
    }
  }
}

/** Gives a publisher its credit back when what it sent is stored or refused: that bounds what waits for the store. */
export class PublishHold implements Confirm {
  constructor(
    private readonly to: Confirm,
    private readonly session: Session,
    private readonly bytes: number,
    private left: number,
  ) {}

  stored(number: number, count: number, sequence: number): void {
    this.to.stored(number, count, sequence);
    this.done(count);
  }

  refused(number: number, count: number, reason: PublishRefusal): void {
    this.to.refused(number, count, reason);
    this.done(count);
  }

  private done(count: number): void {
    if (this.left <= 0) return;
    this.left -= count;
    if (this.left <= 0) this.session.consume(this.bytes);
  }
}
