import {
  DataMessage,
  FIRST_APPLICATION_TYPE,
  HEADER_BYTES,
  IdMap,
  knownCode,
  MessageEncoder,
  type Meta,
  OFFSET,
  payload,
  readU32,
  type Session,
  TrunklineError,
  Type,
  writeHeader,
} from '@trunkline/proto';
import type { Registration } from './registrations.js';
import { ProviderSubscription } from './subscription.js';

/** Sends an answer of the same type, code and line. Returns false when it was not taken. */
export type Reply = (body?: unknown, meta?: Partial<Meta>) => boolean;

/** What a session needs of its provider. */
export interface ProviderSide {
  find(code: number): Registration | undefined;
  report(error: TrunklineError): void;
  /** A subscription of `code` came or went. */
  counted(code: number, change: 1 | -1): void;
  /** Whether the application wants its own messages here. */
  readonly listening: boolean;
  /** What the application makes of one of its own messages; undefined when that is done already. */
  application(message: DataMessage, reply: Reply): Promise<unknown> | undefined;
}

/** What a message is about, for its header. */
interface Addressed {
  readonly code: number;
  readonly line: number;
  readonly generation: number;
}

/** Lines whose end is remembered, so that a REQUEST which crossed with the end does not start them again (F2). */
const REMEMBERED = 1024;
/** Entries of one OFFER. */
const OFFERED_AT_ONCE = 1000;

const encoder = new MessageEncoder();

/** @internal The provider in one session: what the dispatcher at its other end has asked for. */
export class ProviderSession {
  readonly subscriptions = new IdMap<ProviderSubscription>();
  readonly waiting = new Set<ProviderSubscription>();
  /** Written anew for each data message: the hot path makes no object. */
  private readonly header = { type: 0, flags: 0, code: 0, line: 0, generation: 0, metaLength: 0 };
  /** Line and generation. */
  private readonly ended = new Map<number, number>();

  constructor(
    readonly session: Session,
    private readonly side: ProviderSide,
  ) {}

  // ---- towards the dispatcher ----

  offer(registrations: readonly Registration[], type: number = Type.OFFER): void {
    for (let first = 0; first < registrations.length; first += OFFERED_AT_ONCE) {
      const codes: number[] = [];
      const ranges: number[] = [];
      for (const { from, to } of registrations.slice(first, first + OFFERED_AT_ONCE)) {
        if (from === to) codes.push(from);
        else ranges.push(from, to);
      }
      this.session.send({ type }, payload.offer.encode({ codes, ranges }));
    }
  }

  send(type: number, { code, line, generation }: ProviderSubscription, bytes?: Uint8Array): void {
    this.session.send({ type, code, line, generation }, bytes);
  }

  hasRoom(): boolean {
    return this.session.credit > 0;
  }

  /** @throws TrunklineError BODY_INVALID, META_INVALID, MESSAGE_TOO_LARGE */
  check(body: unknown, meta: Partial<Meta>): void {
    this.fit(HEADER_BYTES + encoder.encode(body, meta));
  }

  private fit(length: number): void {
    const most = this.session.peerMaxMessage;
    if (length > most) {
      throw new TrunklineError('MESSAGE_TOO_LARGE', `message of ${length} bytes, the peer takes at most ${most}`);
    }
  }

  /** Writes a data message where the session sends it from; false when there is no room. */
  write(type: number, about: Addressed, flags: number, body: unknown, meta: Partial<Meta>): boolean {
    const { session, header } = this;
    if (session.credit <= 0) {
      // takes nothing, but makes the session tell when there is credit again
      session.reserveData(0);
      return false;
    }
    const length = HEADER_BYTES + encoder.encode(body, meta);
    this.fit(length);
    const at = session.reserveData(length);
    if (at < 0) return false;
    // not before: what encodes the body may be the application's code, which may send something itself
    header.type = type;
    header.flags = flags | encoder.flags;
    header.code = about.code;
    header.line = about.line;
    header.generation = about.generation;
    header.metaLength = encoder.metaLength;
    const { target } = session;
    writeHeader(target, at, length, header);
    encoder.write(target, at + HEADER_BYTES);
    return true;
  }

  /** Returns whether anybody has waited for it. */
  onCredit(): boolean {
    const waiting = [...this.waiting];
    this.waiting.clear();
    for (const subscription of waiting) subscription.drain();
    return waiting.length > 0;
  }

  // ---- from the dispatcher ----

  /** Returns whether the message is a provider's business. */
  onControl(type: number, batch: Uint8Array, at: number): boolean {
    switch (type) {
      case Type.REQUEST:
      case Type.PROBE:
        this.receiveRequest(type, batch, at);
        return true;
      case Type.CANCEL:
        this.receiveCancel(batch, at);
        return true;
      case Type.PROBE_REPLY:
        this.known(batch, at)?.probed();
        return true;
      case Type.REFUSED:
        return this.receiveRefused(batch, at);
      default:
        return false;
    }
  }

  /** The subscription that the header means, if it is this very generation. */
  private known(batch: Uint8Array, at: number): ProviderSubscription | undefined {
    const subscription = this.subscriptions.get(readU32(batch, at + OFFSET.line));
    return subscription?.generation === readU32(batch, at + OFFSET.generation) ? subscription : undefined;
  }

  private receiveRequest(type: number, batch: Uint8Array, at: number): void {
    const line = readU32(batch, at + OFFSET.line);
    const generation = readU32(batch, at + OFFSET.generation);
    const before = this.subscriptions.get(line);
    if (before !== undefined && before.generation > generation) return;
    if (before !== undefined && before.generation === generation) {
      if (type === Type.PROBE) this.send(Type.PROBE_REPLY, before);
      else if (before.accepted) this.send(Type.ACCEPTED, before);
      return;
    }
    if (generation <= (this.ended.get(line) ?? -1)) return;
    const request = this.session.decode(payload.upstreamKey, batch, at);
    if (request === undefined) return;
    const code = readU32(batch, at + OFFSET.code);
    before?.finish(new TrunklineError('ABORTED', 'the dispatcher asked anew'));
    const registration = this.side.find(code);
    if (registration === undefined) {
      this.notProvided({ code, line, generation });
      return;
    }
    const subscription = new ProviderSubscription(this, registration, code, line, generation, request.key);
    this.subscriptions.set(line, subscription);
    this.side.counted(code, 1);
    subscription.start();
    if (type === Type.PROBE && !subscription.over) this.send(Type.PROBE_REPLY, subscription);
  }

  private receiveCancel(batch: Uint8Array, at: number): void {
    const subscription = this.subscriptions.get(readU32(batch, at + OFFSET.line));
    if (subscription === undefined || subscription.generation > readU32(batch, at + OFFSET.generation)) return;
    subscription.finish(new TrunklineError('ABORTED', 'the last subscriber left'));
  }

  /** An OFFER was refused: nobody else is answered REFUSED without a request of its own. */
  private receiveRefused(batch: Uint8Array, at: number): boolean {
    const refused = this.session.decode(payload.refused, batch, at);
    if (refused === undefined || refused.request !== 0) return false;
    const { code, message, retryable } = refused;
    this.side.report(new TrunklineError(knownCode(code, 'REFUSED'), message || undefined, { retryable }));
    return true;
  }

  /** Returns whether the messages are a provider's business; it consumes them then. */
  onData(batch: Uint8Array, start: number, end: number): boolean {
    if (batch[start + OFFSET.type]! < FIRST_APPLICATION_TYPE || !this.side.listening) return false;
    for (let at = start; at < end; at += readU32(batch, at)) {
      const message = new DataMessage(batch, at);
      const { type, length } = message;
      const about = { code: message.code, line: message.line, generation: 0 };
      const reply: Reply = (body, meta) => this.write(type, about, 0, body, meta ?? {});
      const pending = this.side.application(message, reply);
      if (pending === undefined) this.session.consume(length);
      else pending.then(() => this.session.consume(length));
    }
    return true;
  }

  // ---- the end of things ----

  forget(subscription: ProviderSubscription): void {
    const { code, line } = subscription;
    this.waiting.delete(subscription);
    if (this.subscriptions.get(line) === subscription) this.subscriptions.delete(line);
    this.side.counted(code, -1);
  }

  /** The provider itself ended it. */
  remember({ line, generation }: ProviderSubscription): void {
    this.ended.delete(line);
    this.ended.set(line, generation);
    if (this.ended.size > REMEMBERED) this.ended.delete(this.ended.keys().next().value!);
  }

  /** Ends all subscriptions. */
  finish(reason: TrunklineError): void {
    for (const subscription of [...this.subscriptions.values()]) subscription.finish(reason);
  }

  /**
   * Takes one offer back. A dispatcher that has another reason to ask here (a wider range, a static address) is told
   * of each of its streams that nothing more will come, and asks again.
   */
  withdraw(registration: Registration, reason: TrunklineError): void {
    this.offer([registration], Type.WITHDRAW);
    for (const subscription of [...this.subscriptions.values()]) {
      if (subscription.registration !== registration) continue;
      this.notProvided(subscription);
      subscription.finish(reason);
    }
  }

  private notProvided({ code, line, generation }: Addressed): void {
    const bytes = payload.refused.encode({ code: 'NOT_PROVIDED', message: `no handler for ${code}`, retryable: true });
    this.session.send({ type: Type.REFUSED, code, line, generation }, bytes);
  }

  report(error: TrunklineError): void {
    this.side.report(error);
  }
}
