import { payload, Type } from '@trunkline/proto';
import type { Peer } from './peer.js';
import type { Member, MemberPort } from './queues/member.js';
import { deliveryCopy } from './queues/stored-message.js';

/** One session that reads a queue by one of its requests. */
export class Consumer implements MemberPort {
  readonly line: number;
  /** Set at once after it is made. */
  member!: Member;
  /** It was told ACCEPTED; nothing is delivered before. */
  accepted = false;
  /** What was lost before it was accepted: its session does not know the line yet. */
  private early: Partial<payload.Gap> & { count: number } = { count: 0 };

  constructor(
    readonly peer: Peer,
    readonly code: number,
    readonly request: number,
  ) {
    this.line = peer.core.lines.allocate(this);
  }

  /**
   * Messages spend the session's credit, and what waits in its outbox comes first. The backlog of a queue takes half of
   * the credit at most: a handler may wait for the answer of a service, which has to come past the messages behind it.
   */
  get ready(): boolean {
    const { session, outbox, core } = this.peer;
    if (!this.accepted || session.state !== 'open' || outbox.waiting || core.stopping) return false;
    if (session.isHalfFree) return true;
    session.awaitHalf();
    return false;
  }

  get maxMessage(): number {
    return this.peer.session.peerMaxMessage;
  }

  deliver(bytes: Uint8Array, start: number, end: number, count: number, delivery: number): void {
    const { code, line } = this;
    const copy = deliveryCopy(bytes, start, end, { code, line, count: delivery });
    this.peer.session.sendData(copy, 0, copy.length, count);
  }

  /** It was accepted: tells what could not be told before. */
  begin(): void {
    this.accepted = true;
    const { count, first = 0, last = 0, reason = '' } = this.early;
    if (count > 0) this.lost(count, first, last, reason);
    this.member.start();
  }

  lost(count: number, first: number, last: number, reason: string): void {
    if (!this.accepted) {
      const { early } = this;
      this.early = { count: early.count + count, first: early.first ?? first, last, reason };
      return;
    }
    const { code, line } = this;
    this.peer.core.counters.gaps += count;
    this.peer.session.send({ type: Type.GAP, code, line }, payload.gap.encode({ count, first, last, reason }));
  }

  ended(reason: string): void {
    const { code, line } = this;
    this.peer.session.send(
      { type: Type.END, code, line },
      payload.end.encode({ code: 'SERVICE_REMOVED', message: reason }),
    );
    this.forget();
  }

  private forget(): void {
    this.peer.consumers.delete(this.request);
    this.peer.core.lines.release(this.line);
  }

  /** The session does not want it any more, or is gone: what it holds goes to others at once. */
  leave(): void {
    this.forget();
    this.member.leave();
  }
}
