import { type Header, OFFSET, payload, readU32, readU53, Type } from '@trunkline/proto';
import type { LaneMember } from './handlers.js';
import type { Lane } from './lane.js';
import type { Peer } from './peer.js';
import type { Overflow } from './service.js';

/** Responses that a member will be told of instead of getting them. */
interface Missed {
  count: number;
  first: number;
  last: number;
}

/** One session in one lane, for one or several of its requests. */
export class Member implements LaneMember {
  /** Where it stands in its lane's list. */
  index = -1;
  /** The session cancelled it: nothing of it is sent any more. */
  left = false;
  /**
   * Sequence up to which responses came before it joined: a return handler may still hold some of them back (rule 9).
   * -1: it has not joined; 0: nothing is held back here.
   */
  joined = -1;
  missed: Missed | undefined;
  /** The first request, 0: none; most members have no other. */
  private first: number;
  /** Where it wants to start, as long as it is not answered. */
  private start: payload.Start | undefined;
  /** The others, likewise. */
  private others: Map<number, payload.Start | undefined> | undefined;

  constructor(
    readonly peer: Peer,
    readonly lane: Lane,
    readonly overflow: Overflow,
    request: number,
    start: payload.Start | undefined,
  ) {
    this.first = request;
    this.start = start;
  }

  /** `start`: it is not answered yet, and wants to start there. */
  addRequest(request: number, start: payload.Start | undefined): void {
    if (this.first === 0) {
      this.first = request;
      this.start = start;
    } else {
      this.others ??= new Map();
      this.others.set(request, start);
    }
  }

  /** Returns whether there is still another request. */
  removeRequest(request: number): boolean {
    if (this.first === request) {
      this.first = 0;
      this.start = undefined;
    } else if (this.others?.delete(request) && this.others.size === 0) this.others = undefined;
    return this.first !== 0 || this.others !== undefined;
  }

  get requestCount(): number {
    return (this.first === 0 ? 0 : 1) + (this.others?.size ?? 0);
  }

  *requests(): Generator<number> {
    if (this.first !== 0) yield this.first;
    if (this.others !== undefined) yield* this.others.keys();
  }

  /** Requests that are not answered yet. */
  *pending(): Generator<number> {
    if (this.start !== undefined) yield this.first;
    for (const [request, start] of this.others ?? []) if (start !== undefined) yield request;
  }

  isPending(request: number): boolean {
    return (this.first === request ? this.start : this.others?.get(request)) !== undefined;
  }

  /** Answers what was not answered yet: the provider took the request. */
  answerPending(): void {
    const { start, lane } = this;
    if (start !== undefined) {
      this.start = undefined;
      lane.stream.answer(this, this.first, start);
    }
    if (this.others === undefined) return;
    for (const [request, wanted] of this.others) {
      if (wanted === undefined) continue;
      this.others.set(request, undefined);
      lane.stream.answer(this, request, wanted);
    }
  }

  /** Whether any of its requests was answered, so that the lane's messages mean something to the session. */
  get answered(): boolean {
    if (this.first !== 0 && this.start === undefined) return true;
    for (const start of this.others?.values() ?? []) if (start === undefined) return true;
    return false;
  }

  get load(): number {
    const { session, outbox } = this.peer;
    // one that takes nothing any more must not look idle
    return outbox.doomed ? Number.POSITIVE_INFINITY : session.outstanding + outbox.bytes;
  }

  send(buffer: Uint8Array, start: number, end: number, count: number): void {
    // a return handler may hold on to those who left
    if (this.index < 0) return;
    if (this.joined > 0 && readU53(buffer, start + OFFSET.sequence) <= this.joined) {
      this.sendNewer(buffer, start, end);
      return;
    }
    this.sendKept(buffer, start, end, count);
  }

  /** What was held back since before it joined is in its snapshot, or is none of its business. */
  private sendNewer(buffer: Uint8Array, start: number, end: number): void {
    for (let at = start; at < end; ) {
      const next = at + readU32(buffer, at);
      if (readU53(buffer, at + OFFSET.sequence) > this.joined) this.sendKept(buffer, at, next, 1);
      at = next;
    }
  }

  /** Also what came before it joined. */
  sendKept(buffer: Uint8Array, start: number, end: number, count: number): void {
    this.lane.stream.messagesOut += count;
    this.peer.outbox.deliver(this, buffer, start, end, count);
  }

  /** A message that keeps its place among the responses and is never dropped. */
  tell(message: Uint8Array): void {
    this.peer.outbox.tell(this, message);
  }

  /** As `tell`. */
  tellWritten(header: Header, written: payload.Written): void {
    this.peer.outbox.tellWritten(this, header, written);
  }

  miss(count: number, first: number, last: number): void {
    const { missed } = this;
    if (missed === undefined) {
      this.missed = { count, first, last };
    } else {
      missed.count += count;
      missed.last = Math.max(missed.last, last);
      missed.first = Math.min(missed.first, first);
    }
  }

  /** Sends the GAP that is due, now. */
  tellMissed(): void {
    const { missed, lane } = this;
    if (missed === undefined) return;
    this.missed = undefined;
    lane.stream.core.counters.gaps += missed.count;
    this.peer.session.send(
      { type: Type.GAP, code: lane.stream.code, line: lane.line },
      payload.gap.encode({ ...missed, reason: 'overflow' }),
    );
  }
}
