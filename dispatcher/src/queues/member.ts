import type { Group } from './group.js';
import { Held } from './held.js';
import type { Range } from './ranges.js';

/** Where a member's messages go. Calls are synchronous and must not throw. */
export interface MemberPort {
  /** Whether it takes messages now; when it does again it calls the member's `wake`. */
  readonly ready: boolean;
  /** Largest message it takes, bytes. */
  readonly maxMessage: number;
  /** Stored messages back to back in `bytes`, which is never written; `delivery` is how often they were, with this time. */
  deliver(bytes: Uint8Array, start: number, end: number, count: number, delivery: number): void;
  /** `count` messages of the group in this range were dropped before anybody got them. */
  lost(count: number, first: number, last: number, reason: string): void;
  /** The queue or the group is gone; nothing comes any more. */
  ended(reason: string): void;
}

/** One consumer in a group, with a window of messages that it may hold. */
export class Member {
  readonly held = new Held();
  acked = 0;
  delivered = 0;

  constructor(
    readonly group: Group,
    readonly port: MemberPort,
    /** Most messages it holds. */
    readonly window: number,
  ) {}

  get room(): number {
    return this.window - this.held.size;
  }

  /** It is ready for its first messages. */
  start(): void {
    this.group.tellLost();
    this.group.pump();
  }

  wake(): void {
    this.group.pump();
  }

  /**
   * Done with; `done` is called, with the ranges that the member does not hold, once the others are stored as done
   * with. What is late, double, foreign or unknown concerns nothing else.
   */
  ack(ranges: readonly Range[], done: (failed: readonly Range[]) => void): void {
    const { group } = this;
    const taken = this.settle(ranges);
    if (taken.parts.length === 0) {
      done(taken.failed);
      return;
    }
    group.whenStored(() => done(taken.failed));
    group.pump();
  }

  /** Done with: stored with the next commit, which comes soon. Returns the ranges that the member does not hold. */
  ackSoon(ranges: readonly Range[]): readonly Range[] {
    const { failed } = this.settle(ranges);
    this.group.pump();
    return failed;
  }

  private settle(ranges: readonly Range[]): ReturnType<Member['take']> {
    const taken = this.take(ranges);
    for (const { first, last } of taken.parts) {
      this.group.settle(first, last);
      this.acked += last - first + 1;
    }
    return taken;
  }

  /** To be delivered again, not before `delay` ms. Returns the ranges that the member does not hold. */
  nack(ranges: readonly Range[], delay: number, reason: string): readonly Range[] {
    const taken = this.take(ranges);
    this.group.giveBack(taken.parts, delay, reason || 'rejected');
    this.group.pump();
    return taken.failed;
  }

  /** Gives the member `time` ms more from now on; 0: the queue's ackTimeout. Returns what it does not hold. */
  extend(ranges: readonly Range[], time: number): readonly Range[] {
    const { group } = this;
    const { failed, parts } = this.take(ranges);
    const deadline = time > 0 ? group.queue.time() + time : group.queue.deadline();
    for (const { first, last } of parts) this.held.add(first, last, deadline);
    group.arm(deadline);
    return failed;
  }

  private take(ranges: readonly Range[]): { parts: readonly Range[]; failed: readonly Range[] } {
    const parts: Range[] = [];
    const failed: Range[] = [];
    for (const { first, last } of ranges) {
      let next = first;
      for (const part of this.held.take(first, last)) {
        if (part.first > next) failed.push({ first: next, last: part.first - 1 });
        parts.push(part);
        next = part.last + 1;
      }
      if (next <= last) failed.push({ first: next, last });
    }
    return { parts, failed };
  }

  leave(): void {
    this.group.leave(this);
  }
}
