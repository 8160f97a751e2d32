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
import { FilterIndex } from './filters/index.js';
import type { ReturnHandler, SendHandler } from './handlers.js';
import { createKept, type Kept } from './kept.js';
import { Lane, type LaneOptions, laneKey } from './lane.js';
import type { Member } from './member.js';
import { readInput } from './message-input.js';
import type { Provider } from './provider.js';
import type { Keep } from './service.js';
import type { Service } from './services.js';
import { sendSnapshot } from './snapshot.js';
import { Upstream } from './upstream.js';

export type StreamStatus = 'pending' | 'live' | 'stale';

/** Why a stream comes to its end for everyone. */
export interface Ending {
  readonly code: ErrorCode;
  readonly message: string;
  readonly retryable?: boolean;
  readonly exit?: number | undefined;
}

const BROADCAST = 'broadcast';

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
  readonly upstreams: Upstream[] = [];
  kept: Kept | undefined;
  private keep: Keep;
  private maxKept: number;
  private sendHandler: SendHandler;
  private readonly birth: number;
  /** The lane without filter and with the plain return handler: it has the stream's line id. */
  private plain: Lane | undefined;
  private lanes: Map<string, Lane> | undefined;
  private filtered: FilterIndex<Lane> | undefined;
  /** Lanes without a filter, but with a line id of their own. */
  private unfiltered: Set<Lane> | undefined;
  private lingerTimer: Timer | undefined;

  constructor(
    readonly core: Core,
    public service: Service,
    readonly code: number,
    /** The params bytes, one character per byte. */
    readonly params: string,
    /** Tells the registry that nothing holds the stream any more. */
    private readonly onGone: (stream: Stream) => void,
  ) {
    this.line = core.lines.allocate(this);
    this.birth = core.nextGeneration();
    this.keep = service.definition.keep;
    this.maxKept = service.definition.limits.maxKept;
    this.kept = createKept(this.keep, this.maxKept, 0);
    this.sendHandler = service.sendHandler;
  }

  get epoch(): Uint8Array {
    return this.core.epoch(this.birth);
  }

  // ---- lanes and members ----

  /** The lane for these options, if there is one. */
  findLane(options: LaneOptions): Lane | undefined {
    return isPlain(options) ? this.plain : this.lanes?.get(laneKey(options));
  }

  /**
   * The lane for these options, made if need be. Takes over the filter; a second one for the same lane is given back.
   * @throws TrunklineError HANDLER_FAILED: the return handler does not open it; the filter is given back
   */
  lane(options: LaneOptions): Lane {
    if (isPlain(options)) {
      this.plain ??= new Lane(this, this.line, '', options, undefined);
      return this.plain;
    }
    this.lanes ??= new Map();
    const key = laneKey(options);
    const existing = this.lanes.get(key);
    if (existing !== undefined) {
      if (options.filter) this.core.filters.release(options.filter);
      return existing;
    }
    const handler = options.returnHandler === BROADCAST ? undefined : this.service.returnHandler(options.returnHandler);
    const lane = this.openLane(key, options, handler);
    this.lanes.set(key, lane);
    if (options.filter === undefined) {
      this.unfiltered ??= new Set();
      this.unfiltered.add(lane);
    } else {
      this.filtered ??= new FilterIndex();
      this.filtered.add(options.filter, lane);
    }
    return lane;
  }

  private openLane(key: string, options: LaneOptions, handler: ReturnHandler | undefined): Lane {
    const line = this.core.lines.allocate(this);
    try {
      return new Lane(this, line, key, options, handler);
    } catch (error) {
      this.core.lines.release(line);
      if (options.filter) this.core.filters.release(options.filter);
      throw error;
    }
  }

  get laneCount(): number {
    return (this.plain === undefined ? 0 : 1) + (this.lanes?.size ?? 0);
  }

  *allLanes(): Generator<Lane> {
    if (this.plain !== undefined) yield this.plain;
    if (this.lanes !== undefined) yield* this.lanes.values();
  }

  private *allMembers(): Generator<Member> {
    for (const lane of this.allLanes()) yield* lane.members;
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
    if (lane.members.length === 0) this.closeLane(lane);
    if (this.members > 0) return;
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
    if (lane === this.plain) {
      this.plain = undefined;
      return;
    }
    this.lanes!.delete(lane.key);
    this.core.lines.release(lane.line);
    const { filter } = lane.options;
    if (filter === undefined) {
      this.unfiltered!.delete(lane);
    } else {
      this.filtered!.remove(filter, lane);
      if (this.filtered!.size === 0) this.filtered = undefined;
      this.core.filters.release(filter);
    }
  }

  onTimer(): void {
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
      if (!this.upstreams.some((upstream) => upstream.provider === provider)) {
        this.upstreams.push(new Upstream(this.core, this, provider));
      }
    }
    if (this.upstreams.length === 0) this.service.orphans.add(this);
    else this.service.orphans.delete(this);
  }

  upstreamOf(provider: Provider): Upstream | undefined {
    for (const upstream of this.upstreams) if (upstream.provider === provider) return upstream;
    return undefined;
  }

  private drop(upstream: Upstream, cancel: boolean): void {
    const at = this.upstreams.indexOf(upstream);
    if (at >= 0) this.upstreams.splice(at, 1);
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
    for (const member of [...this.allMembers()]) {
      const { pending } = member;
      member.pending = undefined;
      for (const [request, start] of pending ?? []) this.answer(member, request, start);
    }
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
    if (this.upstreams.length === 0) this.becomeStale(reason);
    this.assign(upstream.provider.up ? upstream.provider : undefined);
  }

  /** One provider ended it: the last one ends it for everyone, and so does any with a final response (rule 10). */
  upstreamEnded(upstream: Upstream, ending: Ending, final = false): void {
    this.drop(upstream, false);
    if (final || this.upstreams.length === 0) this.end(ending);
  }

  /** After a reload: the service as it is now. Returns whether an upstream had to be given up for it. */
  adopt(service: Service): boolean {
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
    if (!sameKeep(keep, this.keep) || limits.maxKept !== this.maxKept) {
      this.keep = keep;
      this.maxKept = limits.maxKept;
      // what came before is kept no longer: a reader that resumes there has to be told
      this.kept = createKept(keep, this.maxKept, this.sequence);
    }
    this.adoptSendHandler();
    const outdated = this.upstreams.filter((upstream) => !service.serves(this.code, upstream.provider));
    for (const upstream of outdated) this.drop(upstream, true);
    if (outdated.length > 0 && this.upstreams.length === 0) this.becomeStale('provider removed from the table');
    if (this.upstreams.length === 0 || service.sendHandler.joins) this.assign();
    for (const upstream of this.upstreams) upstream.retime();
    return outdated.length > 0;
  }

  /** Where one provider is chosen instead of several, the one that was heard last goes on (rule 1). */
  private adoptSendHandler(): void {
    const { sendHandler } = this.service;
    if (this.sendHandler === sendHandler) return;
    this.sendHandler = sendHandler;
    if (sendHandler.joins || this.upstreams.length < 2) return;
    const current = this.upstreams.find(({ generation }) => generation === this.generation) ?? this.upstreams[0];
    for (const upstream of [...this.upstreams]) if (upstream !== current) this.drop(upstream, true);
  }

  // ---- responses ----

  /** A run of responses of one upstream that is current; stamps the sequences in place and fans out. */
  receive(buffer: Uint8Array, start: number, end: number, count: number): void {
    for (let at = start; at < end; at += readU32(buffer, at)) writeU53(buffer, at + OFFSET.sequence, ++this.sequence);
    this.kept?.add(buffer, start, end);
    const { plain, unfiltered, filtered } = this;
    plain?.deliver(buffer, start, end, count);
    if (unfiltered !== undefined) for (const lane of unfiltered) lane.deliverCopy(buffer, start, end, count);
    if (filtered !== undefined) this.filter(filtered, buffer, start, end);
  }

  private filter(index: FilterIndex<Lane>, buffer: Uint8Array, start: number, end: number): void {
    const touched: Lane[] = [];
    for (let at = start; at < end; at += readU32(buffer, at)) {
      const input = readInput(buffer, at);
      if (input === undefined) this.core.counters.filterErrors++;
      else {
        index.match(input, (lane) => {
          if (lane.hit(buffer, at)) touched.push(lane);
        });
      }
    }
    for (const lane of touched) lane.deliverHits(buffer);
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
        if (member.pending !== undefined) member.peer.refusePending(member, ending);
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
    for (const upstream of [...this.upstreams]) this.drop(upstream, true);
    this.service.orphans.delete(this);
    this.onGone(this);
  }
}

function isPlain(options: LaneOptions): boolean {
  return options.filter === undefined && options.returnHandler === BROADCAST && options.variant === '';
}

function sameKeep(left: Keep, right: Keep): boolean {
  return JSON.stringify(left) === JSON.stringify(right);
}
