import {
  HEADER_BYTES,
  knownCode,
  type Log,
  OFFSET,
  payload,
  readU32,
  readU53,
  type Session,
  type SessionContext,
  Timer,
  TrunklineError,
  Type,
} from '@trunkline/proto';
import { Consumption, type QueueHandler } from './consumption.js';
import type { ConsumeFields } from './options.js';

/** First wait for an answer before a REQUEST is sent again, and the most it grows to, ms. */
const RESEND_AFTER = 5000;
const RESEND_CAP = 60_000;

interface Entry {
  readonly request: number;
  readonly consumption: Consumption;
  readonly timer: Timer;
  wait: number;
}

/** The consumptions of a client: brings what the dispatcher says to the right ones. */
export class ConsumerTable {
  private readonly entries = new Map<number, Entry>();
  private readonly lines = new Map<number, Consumption>();
  private session: Session | undefined;

  constructor(
    private readonly context: SessionContext,
    private readonly log: Log,
    /** Request ids are one space for all requests of a session. */
    private readonly reserve: () => number,
    private readonly release: (request: number) => void,
  ) {}

  get size(): number {
    return this.entries.size;
  }

  add(fields: ConsumeFields, handler: QueueHandler | undefined): Consumption {
    const { context, log } = this;
    const consumption = new Consumption(fields, handler, { context, log, leave: () => this.leave(entry) });
    const request = this.reserve();
    const timer = new Timer({ onTimer: () => this.send(entry) });
    const entry: Entry = { request, consumption, timer, wait: RESEND_AFTER };
    this.entries.set(request, entry);
    this.send(entry);
    return consumption;
  }

  private send(entry: Entry): void {
    const { session, context } = this;
    if (session === undefined) return;
    const { fields } = entry.consumption;
    const { code, group, filter, window } = fields;
    const after = entry.consumption.resumeAfter();
    const again = { from: payload.StartFrom.AFTER, sequence: after ?? 0, epoch: entry.consumption.epoch };
    const start = after === undefined ? fields.start : again;
    const request = { request: entry.request, group, filter, window, start };
    const bytes = payload.request.encode(request);
    const length = HEADER_BYTES + bytes.length;
    if (length > session.peerMaxMessage) {
      this.remove(entry);
      const text = `request has ${length} bytes, at most ${session.peerMaxMessage}`;
      // not within `consume`: its caller has no listeners yet
      Promise.resolve().then(() => entry.consumption.ended(new TrunklineError('MESSAGE_TOO_LARGE', text)));
      return;
    }
    session.send({ type: Type.REQUEST, code }, bytes);
    context.timers.start(entry.timer, entry.wait * (0.75 + context.random.next() / 2));
    entry.wait = Math.min(RESEND_CAP, entry.wait * 2);
  }

  private remove(entry: Entry): void {
    this.entries.delete(entry.request);
    this.release(entry.request);
    this.context.timers.stop(entry.timer);
    const { target } = entry.consumption;
    if (target !== undefined) this.lines.delete(target.line);
  }

  /** It ended from this side. */
  private leave(entry: Entry): void {
    this.remove(entry);
    if (this.session?.state !== 'open') return;
    const bytes = payload.cancel.encode({ request: entry.request });
    this.session.send({ type: Type.CANCEL, code: entry.consumption.code }, bytes);
  }

  open(session: Session): void {
    this.session = session;
    for (const entry of [...this.entries.values()]) {
      entry.wait = RESEND_AFTER;
      this.send(entry);
    }
  }

  lost(): void {
    this.session = undefined;
    this.lines.clear();
    for (const { timer, consumption } of [...this.entries.values()]) {
      this.context.timers.stop(timer);
      consumption.lost();
    }
  }

  /** Sends the acknowledgements that were given until now. */
  flush(): void {
    for (const { consumption } of this.entries.values()) consumption.flush();
  }

  /** `failed`: it was not this side that closed. */
  close(error: TrunklineError, failed: boolean): void {
    this.session = undefined;
    for (const entry of [...this.entries.values()]) {
      this.remove(entry);
      if (failed) entry.consumption.ended(error);
      else void entry.consumption.close();
    }
    this.lines.clear();
  }

  /** Returns whether the message is the table's business. */
  control(session: Session, type: number, batch: Uint8Array, at: number): boolean {
    // nothing is read twice for those who only subscribe
    if (this.entries.size === 0 && type !== Type.SETTLED) return false;
    if (type === Type.ACCEPTED) return this.accepted(session, batch, at);
    if (type === Type.REFUSED) return this.refused(session, batch, at);
    const consumption = this.lines.get(readU32(batch, at + OFFSET.line));
    if (type === Type.SETTLED) {
      const settled = session.decode(payload.settled, batch, at);
      if (settled !== undefined) consumption?.settledBy(settled);
      return true;
    }
    // the line of another type may be somebody else's: PUBLISHED carries the publisher's
    if (consumption === undefined || (type !== Type.GAP && type !== Type.END)) return false;
    if (type === Type.GAP) {
      const gap = session.decode(payload.gap, batch, at);
      if (gap !== undefined) consumption.gap(gap);
    } else {
      const end = session.decode(payload.end, batch, at);
      if (end !== undefined) this.end(consumption, end.code, end.message);
    }
    return true;
  }

  private end(consumption: Consumption, code: string, message: string): void {
    for (const entry of this.entries.values()) if (entry.consumption === consumption) this.remove(entry);
    consumption.ended(new TrunklineError(knownCode(code, 'SERVICE_REMOVED'), message || undefined));
  }

  private accepted(session: Session, batch: Uint8Array, at: number): boolean {
    const answer = session.decode(payload.accepted, batch, at);
    if (answer === undefined) return true;
    const entry = this.entries.get(answer.request);
    if (entry === undefined) return false;
    this.context.timers.stop(entry.timer);
    const line = readU32(batch, at + OFFSET.line);
    // a repetition of the answer
    if (entry.consumption.target?.line === line) return true;
    this.lines.set(line, entry.consumption);
    entry.consumption.acceptedIn(session, line, answer.epoch, readU53(batch, at + OFFSET.sequence));
    return true;
  }

  private refused(session: Session, batch: Uint8Array, at: number): boolean {
    const answer = session.decode(payload.refused, batch, at);
    if (answer === undefined) return true;
    const entry = this.entries.get(answer.request);
    if (entry === undefined) return false;
    this.remove(entry);
    const { code, message, retryable, position } = answer;
    const more = { retryable, position: position === 0 ? undefined : position };
    entry.consumption.ended(new TrunklineError(knownCode(code, 'REFUSED'), message || undefined, more));
    return true;
  }

  /** Returns whether anybody here has the line. */
  data(batch: Uint8Array, start: number, end: number): boolean {
    if (this.lines.size === 0) return false;
    const consumption = this.lines.get(readU32(batch, start + OFFSET.line));
    if (consumption === undefined) return false;
    for (let at = start; at < end; at += readU32(batch, at)) consumption.receive(batch, at);
    consumption.received();
    return true;
  }
}
