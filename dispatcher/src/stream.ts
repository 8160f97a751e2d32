import {
  type ErrorCode,
  OFFSET,
  payload,
  readU32,
  singleMessage,
  Timer,
  type TimerOwner,
  Type,
  writeU53,
} from '@trunkline/proto';
import type { Core } from './core.js';
import { createKept, type Kept, keepsAs } from './kept.js';
import { BROADCAST, Lane, type LaneOptions, type SpecialLane } from './lane.js';
import type { Member } from './member.js';
import type { Provider } from './provider.js';
import type { Service } from './services.js';
import { sendSnapshot } from './snapshot.js';
import { SpecialLanes } from './special-lanes.js';
import { Upstream } from './upstream.js';

export type StreamStatus = 'pending' | 'live' | 'stale';

/** Why a stream comes to its end for everyone. */
export interface Ending {
  readonly code: ErrorCode;
  readonly message: string;
  readonly retryable?: boolean;
  readonly exit?: number | undefined;
}

/** What the dispatcher keeps for one distinct (service code, params): rule 1. */
export class Stream implements TimerOwner {
  readonly line: number;
  status: StreamStatus = 'pending';
  /** Sequence of the last response; grows through generations. */
  sequence = 0;
  /** Generation of the upstream that was last heard to begin. */
  generation = 0;
  messagesOut = 0;
  members = 0;
  /** Lives on without a subscriber: it is recorded. */
  pinned = false;
  kept: Kept | undefined;
  /** The first upstream, which knows the next; more than one is rare. */
  private upstream: Upstream | undefined;
  private readonly birth: number;
  /** The lane without filter and with the plain return handler: it has the stream's line id. */
  private plain: Lane | undefined;
  private special: SpecialLanes | undefined;
  private lingerTimer: Timer | undefined;

  constructor(
    public service: Service,
    readonly code: number,
    /** The params bytes, one character per byte. */
    readonly params: string,
  ) {
    const { core, definition } = service;
    this.line = core.lines.allocate(this);
    this.birth = core.nextGeneration();
    this.kept = createKept(definition.keep, definition.limits.maxKept, 0);
  }

  get core(): Core {
    return this.service.core;
  }

  /** Valid until another one is asked for. */
  get epoch(): Uint8Array {
    return this.core.epoch(this.birth);
  }

  // ---- lanes and members ----

  /** The lane for these options, if there is one. */
  findLane(options: LaneOptions): Lane | undefined {
    return isPlain(options) ? this.plain : this.special?.find(options);
  }

  /**
   * The lane for these options, made if need be. Takes over the filter; a second one for the same lane is given back.
   * @throws TrunklineError HANDLER_FAILED: the return handler does not open it; the filter is given back
   */
  lane(options: LaneOptions): Lane {
    if (isPlain(options)) {
      this.plain ??= new Lane(this, options);
      return this.plain;
    }
    this.special ??= new SpecialLanes(this);
    return this.special.get(options);
  }

  get laneCount(): number {
    return (this.plain === undefined ? 0 : 1) + (this.special?.size ?? 0);
  }

  *allLanes(): Generator<Lane> {
    if (this.plain !== undefined) yield this.plain;
    if (this.special !== undefined) yield* this.special.all();
  }

  join(member: Member): void {
    member.lane.add(member);
    this.members++;
    this.service.subscribers++;
    if (this.lingerTimer?.active) this.core.context.timers.stop(this.lingerTimer);
  }

  /** A member leaves; with the last one `linger` begins (rule 8). */
  leave(member: Member): void {
    const { lane } = member;
    lane.remove(member);
    this.members--;
    this.service.subscribers--;
    if (lane.size === 0) this.closeLane(lane);
    if (this.members > 0 || this.pinned) return;
    const { linger } = this.service.definition;
    if (linger === 0 || this.status === 'pending') {
      this.close();
    } else {
      this.lingerTimer ??= new Timer(this);
      this.core.context.timers.start(this.lingerTimer, linger);
    }
  }

  private closeLane(lane: Lane): void {
    lane.close();
    if (lane === this.plain) this.plain = undefined;
    else this.special!.remove(lane as SpecialLane);
  }

  onTimer(): void {
    if (this.members === 0 && !this.pinned) this.close();
  }

  /** Nobody keeps it without a subscriber any more. */
  unpin(): void {
    this.pinned = false;
    if (this.members === 0) this.close();
  }

  /** Answers one request of a member that is served now (rules 2 and 9). */
  answer(member: Member, request: number, start: payload.Start): void {
    this.core.counters.accepted++;
    sendSnapshot(this, member, request, start);
  }

  // ---- upstreams ----

  /** Gives the stream its upstream(s), or leaves it among those that wait for a provider. `without` is not asked. */
  assign(without?: Provider): void {
    for (const provider of this.service.choose(this, without)) {
      if (this.upstreamOf(provider) === undefined) this.append(new Upstream(this, provider));
    }
    if (this.upstream === undefined) this.service.orphans.add(this);
    else if (this.service.orphans.size > 0) this.service.orphans.delete(this);
  }

  private append(upstream: Upstream): void {
    let last = this.upstream;
    while (last?.sibling !== undefined) last = last.sibling;
    if (last === undefined) this.upstream = upstream;
    else last.sibling = upstream;
  }

  /** In the order in which they were chosen. */
  get upstreams(): Upstream[] {
    const list: Upstream[] = [];
    for (let each = this.upstream; each !== undefined; each = each.sibling) list.push(each);
    return list;
  }

  /** Whether it has an upstream. */
  get served(): boolean {
    return this.upstream !== undefined;
  }

  upstreamOf(provider: Provider): Upstream | undefined {
    let upstream = this.upstream;
    while (upstream !== undefined && upstream.provider !== provider) upstream = upstream.sibling;
    return upstream;
  }

  private drop(upstream: Upstream, cancel: boolean): void {
    if (this.upstream === upstream) this.upstream = upstream.sibling;
    for (let each = this.upstream; each !== undefined; each = each.sibling) {
      if (each.sibling === upstream) each.sibling = upstream.sibling;
    }
    upstream.sibling = undefined;
    upstream.close(cancel);
  }

  /** An upstream was answered: for the first time, or again after it was stale. */
  upstreamLive(upstream: Upstream): void {
    const first = this.status === 'pending';
    const boundary = this.generation !== upstream.generation;
    const wasStale = this.status === 'stale';
    this.status = 'live';
    this.generation = upstream.generation;
    if (first) this.answerPending();
    // rule 7: a new generation begins with a marked boundary
    else if (boundary || wasStale) this.tellStatus(boundary ? 'new generation' : 'provider answers');
  }

  private answerPending(): void {
    this.plain?.answerPending();
    if (this.special !== undefined) for (const lane of this.special.all()) lane.answerPending();
  }

  upstreamStale(upstream: Upstream, reason: string): void {
    if (!this.upstreams.some((other) => other.state === 'live')) this.becomeStale(reason);
    // another provider may know better than a silent one
    if (this.service.sendHandler.joins || !this.service.hasOther(this, upstream.provider)) return;
    this.drop(upstream, true);
    this.assign(upstream.provider);
  }

  private becomeStale(reason: string): void {
    if (this.status !== 'live') return;
    this.status = 'stale';
    this.tellStatus(reason);
  }

  private tellStatus(reason: string): void {
    const bytes = payload.status.encode({ state: this.status, reason });
    for (const lane of this.allLanes()) {
      lane.flush();
      const { code, generation, sequence } = this;
      const message = singleMessage({ type: Type.STATUS, code, line: lane.line, generation, sequence }, bytes);
      for (const member of lane.members) if (member.answered) member.tell(message);
    }
  }

  /** The provider is gone, or does not serve the code any more: another one, or wait. */
  upstreamLost(upstream: Upstream, reason: string): void {
    this.drop(upstream, false);
    if (this.upstream === undefined) this.becomeStale(reason);
    this.assign(upstream.provider.up ? upstream.provider : undefined);
  }

  /** One provider ended it: the last one ends it for everyone, and so does any with a final response (rule 10). */
  upstreamEnded(upstream: Upstream, ending: Ending, final = false): void {
    this.drop(upstream, false);
    if (final || this.upstream === undefined) this.end(ending);
  }

  /**
   * After a reload: the service as it is now. Returns whether an upstream had to be given up for it.
   * @param rehandled services with another send handler than before
   */
  adopt(service: Service, rehandled: ReadonlySet<Service>): boolean {
    const previous = this.service;
    this.service = service;
    if (previous !== service) {
      previous.orphans.delete(this);
      previous.streams--;
      previous.subscribers -= this.members;
      service.streams++;
      service.subscribers += this.members;
    }
    const { keep, limits } = service.definition;
    // what came before is kept no longer: a reader that resumes there has to be told
    if (!keepsAs(this.kept, keep, limits.maxKept)) this.kept = createKept(keep, limits.maxKept, this.sequence);
    const changed = rehandled.has(service) || rehandled.has(previous) || previous.sendHandler !== service.sendHandler;
    if (changed && !service.sendHandler.joins) this.keepOneUpstream();
    const outdated = this.upstreams.filter((upstream) => !service.serves(this.code, upstream.provider));
    for (const upstream of outdated) this.drop(upstream, true);
    if (outdated.length > 0 && this.upstream === undefined) this.becomeStale('provider removed from the table');
    if (this.upstream === undefined || service.sendHandler.joins) this.assign();
    for (const upstream of this.upstreams) upstream.retime();
    return outdated.length > 0;
  }

  /** Where one provider is chosen instead of several, the one that was heard last goes on (rule 1). */
  private keepOneUpstream(): void {
    const { upstreams } = this;
    const current = upstreams.find(({ generation }) => generation === this.generation) ?? upstreams[0];
    for (const upstream of upstreams) if (upstream !== current) this.drop(upstream, true);
  }

  // ---- responses ----

  /** A run of responses of one upstream that is current; stamps the sequences in place and fans out. */
  receive(buffer: Uint8Array, start: number, end: number, count: number): void {
    for (let at = start; at < end; at += readU32(buffer, at)) writeU53(buffer, at + OFFSET.sequence, ++this.sequence);
    this.kept?.add(buffer, start, end);
    if (this.service.definition.record !== undefined) this.core.record(this, buffer, start, end);
    this.plain?.deliver(buffer, start, end, count);
    this.special?.deliver(buffer, start, end, count);
  }

  // ---- the end ----

  /** Ends it for everyone and tells them (rules 2 and 10). */
  end(ending: Ending): void {
    const bytes = payload.end.encode(ending);
    for (const lane of [...this.allLanes()]) {
      lane.flush();
      const { code, generation, sequence } = this;
      const message = singleMessage({ type: Type.END, code, line: lane.line, generation, sequence }, bytes);
      for (const member of [...lane.members]) {
        member.peer.refusePending(member, ending);
        if (member.answered) member.tell(message);
        member.peer.detach(member);
      }
    }
    // without members the stream may still linger
    this.close();
  }

  /** Leaves nothing behind (rule 12). */
  close(): void {
    if (this.core.lines.get(this.line) !== this) return;
    this.core.lines.release(this.line);
    if (this.lingerTimer !== undefined) this.core.context.timers.stop(this.lingerTimer);
    for (const upstream of this.upstreams) this.drop(upstream, true);
    this.service.orphans.delete(this);
    this.service.gone(this);
  }
}

function isPlain(options: LaneOptions): boolean {
  return options.filter === undefined && options.returnHandler === BROADCAST && options.variant === '';
}
