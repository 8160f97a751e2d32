import { type ErrorCode, IdMap, payload, type Session, Type } from '@trunkline/proto';
import type { Consumer } from './consumer.js';
import type { Core } from './core.js';
import type { Hold } from './hold.js';
import type { Member } from './member.js';
import { Outbox } from './outbox.js';
import type { Provider } from './provider.js';

/** What a refusal says. */
export interface Refusal {
  readonly code: ErrorCode;
  readonly message: string;
  readonly retryable?: boolean;
  readonly position?: number | undefined;
}

/** What the dispatcher keeps for one session: what it asked for, what waits for it, and what it provides. */
export class Peer {
  readonly outbox: Outbox;
  /** By the request ids that the session chose. */
  readonly requests = new IdMap<Member>();
  /** Of queues, by the request ids that the session chose. */
  readonly consumers = new Map<number, Consumer>();
  /** Set once it OFFERed a code, or was dialled at a static address. */
  provider: Provider | undefined;

  constructor(
    readonly session: Session,
    /** Names the session in views, logs and admin calls. */
    readonly id: number,
    readonly core: Core,
    currentHold: () => Hold | undefined,
  ) {
    this.outbox = new Outbox(session, core, currentHold);
  }

  get name(): string {
    return this.session.peer.name;
  }

  refuse(code: number, request: number, refusal: Refusal): void {
    this.core.counters.refusals++;
    const { position, ...rest } = refusal;
    this.session.send(
      { type: Type.REFUSED, code },
      payload.refused.encode({ request, ...rest, position: position ?? 0 }),
    );
  }

  /** The stream ends before these requests were accepted. */
  refusePending(member: Member, refusal: Refusal): void {
    for (const request of member.pending()) this.refuse(member.lane.stream.code, request, refusal);
  }

  /** The session ends one of its requests (rule 8). */
  cancel(request: number): void {
    this.consumers.get(request)?.leave();
    const member = this.requests.get(request);
    if (member === undefined) return;
    this.requests.delete(request);
    if (member.removeRequest(request)) return;
    member.left = true;
    member.lane.stream.leave(member);
    this.outbox.forget(member);
  }

  /** The stream ends the member, with all its requests. */
  detach(member: Member): void {
    for (const request of member.requests()) this.requests.delete(request);
    member.lane.stream.leave(member);
  }

  /** The session is gone: nothing of it stays (rule 12). */
  close(): void {
    this.outbox.clear();
    const members = new Set(this.requests.values());
    this.requests.clear();
    for (const member of members) member.lane.stream.leave(member);
    for (const consumer of [...this.consumers.values()]) consumer.leave();
  }
}
