import { OFFSET, payload, readU32, type Session, TrunklineError } from '@trunkline/proto';
import type { Core } from './core.js';
import type { Filter } from './filters/index.js';
import { BROADCAST, type Lane, type LaneOptions, PLAIN } from './lane.js';
import { Member } from './member.js';
import type { Peer } from './peer.js';
import type { Registry } from './registry.js';
import type { Overflow } from './service.js';
import type { Service } from './services.js';
import type { Stream } from './stream.js';

export interface SubscriptionLimits {
  /** Requests of one session. */
  readonly maxSubscriptions: number;
}

/** Longest epoch, bytes, and name of a group, characters, of a REQUEST: they are kept. */
const MAX_EPOCH = 64;
const MAX_GROUP = 256;

/** REQUEST and CANCEL of subscribers. */
export class Subscriptions {
  constructor(
    private readonly core: Core,
    private readonly registry: Registry,
    private readonly limits: SubscriptionLimits,
  ) {}

  /** Every request is answered exactly once: ACCEPTED, now or when the provider accepts, or REFUSED (rule 2). */
  request(peer: Peer, session: Session, batch: Uint8Array, at: number): void {
    const fields = session.decode(payload.keyedRequest, batch, at);
    if (fields === undefined) return;
    this.core.counters.requests++;
    const code = readU32(batch, at + OFFSET.code);
    try {
      this.subscribe(peer, code, fields);
    } catch (error) {
      if (!(error instanceof TrunklineError)) throw error;
      const { message, retryable, position } = error;
      peer.refuse(code, fields.request, { code: error.code, message, retryable, position });
    }
  }

  cancel(peer: Peer, session: Session, batch: Uint8Array, at: number): void {
    const fields = session.decode(payload.cancel, batch, at);
    if (fields !== undefined) peer.cancel(fields.request);
  }

  private subscribe(peer: Peer, code: number, fields: payload.KeyedRequest): void {
    const { request, start } = fields;
    if (request === 0) throw new TrunklineError('REQUEST_INVALID', 'a request id must not be 0');
    if (start.epoch.length > MAX_EPOCH) throw new TrunklineError('REQUEST_INVALID', 'no epoch is that long');
    if (fields.group.length > MAX_GROUP)
      throw new TrunklineError('REQUEST_INVALID', 'the name of the group is too long');
    const known = peer.requests.get(request);
    if (known !== undefined) {
      this.repeat(known, code, fields);
      return;
    }
    const service = this.registry.service(code);
    if (service === undefined) throw new TrunklineError('UNKNOWN_SERVICE', `no service has the code ${code}`);
    const overflow = this.checkLimits(peer, service, fields);
    const options = this.laneOptions(service, fields);
    this.enter(peer, service, code, fields, options, overflow);
  }

  /** The same request again: its answer is still to come, or was lost with nothing else of the session. */
  private repeat(member: Member, code: number, { request, key }: payload.KeyedRequest): void {
    const { stream } = member.lane;
    if (stream.code !== code || stream.params !== key) {
      throw new TrunklineError('REQUEST_INVALID', `request id ${request} is in use`);
    }
    if (member.isPending(request)) return;
    stream.answer(member, request, { from: payload.StartFrom.LIVE, sequence: 0, epoch: new Uint8Array(0) });
  }

  private checkLimits(peer: Peer, service: Service, fields: payload.KeyedRequest): Overflow {
    const { limits, overflow, name } = service.definition;
    if (fields.key.length > limits.maxParams) {
      throw new TrunklineError('LIMIT_EXCEEDED', `params have ${fields.key.length} bytes, at most ${limits.maxParams}`);
    }
    if (service.subscribers >= limits.maxSubscribers) {
      throw new TrunklineError('LIMIT_EXCEEDED', `service ${name} has ${limits.maxSubscribers} subscribers`, {
        retryable: true,
      });
    }
    if (peer.requests.size >= this.limits.maxSubscriptions) {
      throw new TrunklineError('LIMIT_EXCEEDED', `the session has ${this.limits.maxSubscriptions} subscriptions`, {
        retryable: true,
      });
    }
    const wanted = fields.overflow === '' ? overflow[0]! : fields.overflow;
    if (!overflow.includes(wanted as Overflow)) {
      throw new TrunklineError('OVERFLOW_NOT_ALLOWED', `overflow must be one of ${overflow.join(', ')}`);
    }
    return wanted as Overflow;
  }

  private laneOptions(service: Service, fields: payload.Request): LaneOptions {
    const { returnHandlers, latestRate } = service.definition;
    const returnHandler = fields.returnHandler === '' ? returnHandlers[0]! : fields.returnHandler;
    if (!returnHandlers.includes(returnHandler)) {
      throw new TrunklineError('RETURN_HANDLER_NOT_ALLOWED', `return must be one of ${returnHandlers.join(', ')}`);
    }
    if (returnHandler === BROADCAST && fields.filter === '') return PLAIN;
    const handler = service.returnHandler(returnHandler)!;
    // an option that the return handler does not look at must not split its lane
    const options = {
      group: returnHandler === 'broadcast' || returnHandler === 'latest' ? '' : fields.group,
      rate: returnHandler === 'broadcast' || returnHandler === 'group' ? 0 : fields.rate || latestRate,
    };
    const wrong = this.core.guard('return handler', () => handler.check?.(options), 'the return handler failed');
    if (wrong !== undefined) throw new TrunklineError('RETURN_HANDLER_NOT_ALLOWED', wrong);
    return { filter: this.filter(fields.filter), returnHandler, variant: '', ...options };
  }

  private filter(text: string): Filter | undefined {
    if (text.trim() === '') return undefined;
    return this.core.filters.acquire(text);
  }

  private enter(
    peer: Peer,
    service: Service,
    code: number,
    fields: payload.KeyedRequest,
    options: LaneOptions,
    overflow: Overflow,
  ): void {
    const stream = this.stream(service, code, fields.key, options);
    const other = stream.findLane(options)?.find(peer);
    // one session, one lane, two overflow policies: a session is sent a response once per lane, so it needs a second one
    const clash = other !== undefined && other.overflow !== overflow;
    if (clash && service.returnHandler(options.returnHandler)?.snapshots === false) {
      // a second lane would be a second group, and responses would go to two of its members
      if (options.filter) this.core.filters.release(options.filter);
      const message = `the session is in the group ${options.group} with overflow ${other.overflow}`;
      throw new TrunklineError('OVERFLOW_NOT_ALLOWED', message);
    }
    const lane = this.lane(stream, clash ? { ...options, variant: overflow } : options);
    const { request, start } = fields;
    const waits = stream.status === 'pending';
    const pending = waits ? lasting(start) : undefined;
    const existing = lane.find(peer);
    const member = existing ?? new Member(peer, lane, overflow, request, pending);
    if (existing === undefined) stream.join(member);
    else existing.addRequest(request, pending);
    peer.requests.set(request, member);
    if (stream.members === 1 && !stream.served) stream.assign();
    if (!waits) stream.answer(member, request, start);
  }

  private lane(stream: Stream, options: LaneOptions): Lane {
    try {
      return stream.lane(options);
    } catch (error) {
      // opened for this request alone
      if (stream.members === 0 && !stream.served) stream.close();
      throw error;
    }
  }

  private stream(service: Service, code: number, params: string, options: LaneOptions): Stream {
    const existing = this.registry.find(code, params);
    if (existing !== undefined && !this.core.lines.full) return existing;
    if (service.streams >= service.definition.limits.maxStreams || this.core.lines.full) {
      if (options.filter) this.core.filters.release(options.filter);
      throw new TrunklineError('LIMIT_EXCEEDED', `service ${service.definition.name} has too many streams`, {
        retryable: true,
      });
    }
    return this.registry.open(service, code, params);
  }
}

/** The payload is a view of a batch that will not stay. */
function lasting(start: payload.Start): payload.Start {
  return start.epoch.length === 0 ? start : { ...start, epoch: start.epoch.slice() };
}
