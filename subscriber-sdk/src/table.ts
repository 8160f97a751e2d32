import {
  Flag,
  HEADER_BYTES,
  IdMap,
  keyBytes,
  knownCode,
  type Log,
  OFFSET,
  paramsKey,
  payload,
  readU32,
  readU53,
  type Session,
  TrunklineError,
  Type,
} from '@trunkline/proto';
import { Message, settle } from './message.js';
import { aborted, type RequestFields } from './options.js';
import type { GapEvent, SubscriptionInput, SubscriptionOwner } from './subscription.js';

const HISTORY_LOST: GapEvent = Object.freeze({ count: 0, first: 0, last: 0, reason: 'history lost' });

/** A lane as this session knows it. Equal subscriptions of one session may share it; nearly always there is one. */
class Line {
  only: Entry | undefined;
  /** More than one. Replaced when one leaves, appended to when one joins, so that a walk over it goes on undisturbed. */
  private many: Entry[] | undefined;

  constructor(
    readonly id: number,
    first: Entry,
    /** Whose snapshot is under way; an ACCEPTED is directly followed by its snapshot. */
    public joining: Entry | undefined,
  ) {
    this.only = first;
  }

  get entries(): readonly Entry[] {
    return this.many ?? (this.only === undefined ? [] : [this.only]);
  }

  get empty(): boolean {
    return this.many === undefined && this.only === undefined;
  }

  add(entry: Entry): void {
    if (this.many === undefined) this.many = [...this.entries, entry];
    else this.many.push(entry);
    this.only = undefined;
  }

  remove(entry: Entry): void {
    if (this.joining === entry) this.joining = undefined;
    if (this.only === entry) this.only = undefined;
    if (this.many === undefined) return;
    this.many = this.many.filter((other) => other !== entry);
    if (this.many.length > 1) return;
    this.only = this.many[0];
    this.many = undefined;
  }
}

/** One subscription on the wire. */
export class Entry implements SubscriptionOwner {
  line: Line | undefined;
  over = false;
  /** The history that `resume` belongs to, one character a byte. */
  epoch = '';
  /** Everything up to here was received; 0: nothing. */
  resume = 0;
  /** The last REQUEST asked for what came after `resume`, so its snapshot comes in the order of sequences. */
  resuming = false;
  /** Last sequence of the stream when it was joined. */
  joined = 0;
  /** Live responses up to here are not for this entry: they were sent to the line before it joined. */
  floor = 0;
  /** The user has not been told yet that history was lost; a GAP from the dispatcher may say it better. */
  gapDue = false;

  /** Takes the listener for an abort away again; most have none. */
  private unlisten: (() => void) | undefined;
  private inside: SubscriptionInput | undefined;

  constructor(
    private readonly table: SubscriptionTable,
    readonly request: number,
    readonly fields: RequestFields,
    readonly log: Log,
  ) {}

  /** @param signal ends it */
  attach(input: SubscriptionInput, signal: AbortSignal | undefined): void {
    this.inside = input;
    if (signal === undefined) return;
    const abort = () => input.dropped(aborted(signal), true);
    signal.addEventListener('abort', abort);
    this.unlisten = () => signal.removeEventListener('abort', abort);
  }

  get input(): SubscriptionInput {
    return this.inside!;
  }

  leave(): void {
    this.table.remove(this, true);
  }

  ended(): void {
    // what had arrived before the end may still wait for the handler, and an abort ends that too
    this.unlisten?.();
    this.unlisten = undefined;
  }

  /** Rule 9: goes on where it was, unless the user wants live responses only. */
  start(): payload.Start {
    const { start } = this.fields;
    const again = this.resume > 0 && start.from !== payload.StartFrom.LIVE;
    this.resuming = again || start.from === payload.StartFrom.AFTER;
    return again ? { from: payload.StartFrom.AFTER, sequence: this.resume, epoch: keyBytes(this.epoch) } : start;
  }

  tellGap(): void {
    if (!this.gapDue) return;
    this.gapDue = false;
    if (!this.over) this.input.gap(HISTORY_LOST);
  }
}

/** The subscriptions of a client and the lines of its session: brings what the dispatcher says to the right ones. */
export class SubscriptionTable {
  private readonly entries = new IdMap<Entry>();
  private readonly lines = new IdMap<Line>();
  private session: Session | undefined;
  private lastRequest = 0;
  private roundAgain = false;
  /** Request ids of others in the session. */
  private readonly taken = new Set<number>();

  get size(): number {
    return this.entries.size;
  }

  get lineCount(): number {
    return this.lines.size;
  }

  /** Makes room for a subscription; `send` follows when the caller is ready for answers. */
  add(fields: RequestFields, log: Log): Entry {
    const entry = new Entry(this, this.freeRequest(), fields, log);
    this.entries.set(entry.request, entry);
    return entry;
  }

  private freeRequest(): number {
    // in the first round none was used before
    if (!this.roundAgain && this.lastRequest < 0xffffffff) return ++this.lastRequest;
    this.roundAgain = true;
    do this.lastRequest = (this.lastRequest % 0xffffffff) + 1;
    while (this.entries.has(this.lastRequest) || this.taken.has(this.lastRequest));
    return this.lastRequest;
  }

  /** A request id for something else than a subscription, until it is released. */
  reserve(): number {
    const request = this.freeRequest();
    this.taken.add(request);
    return request;
  }

  release(request: number): void {
    this.taken.delete(request);
  }

  /**
   * Sends the REQUEST if there is a session; otherwise the next one begins with it. Within a session it is not sent
   * again: what gets lost on the link ends the session (PROTOCOL.md M-26), and a dispatcher that has much to do would
   * only get more.
   */
  send(entry: Entry): void {
    const { session } = this;
    if (session === undefined || entry.over) return;
    const { fields } = entry;
    const written = payload.writeRequest(entry.request, fields, entry.start());
    const length = HEADER_BYTES + written.length;
    if (length > session.peerMaxMessage) {
      const text = `request has ${length} bytes, at most ${session.peerMaxMessage}`;
      this.remove(entry, false);
      // not within `subscribe`: its caller has no listeners yet
      Promise.resolve().then(() => entry.input.refused(new TrunklineError('MESSAGE_TOO_LARGE', text)));
      return;
    }
    session.sendWritten({ type: Type.REQUEST, code: fields.code }, written);
  }

  /** Forgets the entry. `tell`: the dispatcher does not know yet that it ended (rule 8). */
  remove(entry: Entry, tell: boolean): void {
    if (entry.over) return;
    entry.over = true;
    this.entries.delete(entry.request);
    this.leave(entry);
    if (tell && this.session?.state === 'open') {
      const bytes = payload.cancel.encode({ request: entry.request });
      this.session.send({ type: Type.CANCEL, code: entry.fields.code }, bytes);
    }
  }

  private leave(entry: Entry): void {
    const { line } = entry;
    if (line === undefined) return;
    entry.line = undefined;
    line.remove(entry);
    if (line.empty) this.lines.delete(line.id);
  }

  /** A session began: everything is requested again, in one burst (rule 11). */
  open(session: Session): void {
    this.session = session;
    for (const entry of [...this.entries.values()]) this.send(entry);
  }

  lost(reason: string): void {
    this.session = undefined;
    this.lines.clear();
    const entries = [...this.entries.values()];
    for (const entry of entries) {
      entry.line = undefined;
    }
    for (const entry of entries) {
      entry.tellGap();
      if (!entry.over) entry.input.disconnected(reason);
    }
  }

  /** Ends everything from this side. `failed`: loops throw the error. */
  close(error: TrunklineError, failed: boolean): void {
    for (const entry of [...this.entries.values()]) entry.input.dropped(error, failed);
    this.session = undefined;
    this.lines.clear();
  }

  /** Returns whether the message is the table's business. */
  control(session: Session, type: number, batch: Uint8Array, at: number): boolean {
    switch (type) {
      case Type.ACCEPTED:
        this.accepted(session, batch, at);
        return true;
      case Type.REFUSED:
        return this.refused(session, batch, at);
      case Type.STATUS: {
        const status = session.decode(payload.status, batch, at);
        if (status === undefined) return true;
        const generation = readU32(batch, at + OFFSET.generation);
        const state = status.state === 'stale' ? 'stale' : 'live';
        this.each(batch, at, (entry) => entry.input.status(state, status.reason, generation));
        return true;
      }
      case Type.GAP: {
        const gap = session.decode(payload.gap, batch, at);
        if (gap === undefined) return true;
        this.each(batch, at, (entry) => {
          // one about the history says better what was lost of it; any other comes after that
          if (gap.reason === 'history') entry.gapDue = false;
          else entry.tellGap();
          if (!entry.over) entry.input.gap(gap);
        });
        return true;
      }
      case Type.END: {
        const end = session.decode(payload.end, batch, at);
        if (end !== undefined) this.each(batch, at, (entry) => this.end(entry, endError(end)));
        return true;
      }
      default:
        return false;
    }
  }

  private each(batch: Uint8Array, at: number, call: (entry: Entry) => void): void {
    const line = this.lines.get(readU32(batch, at + OFFSET.line));
    if (line === undefined) return;
    for (const entry of [...line.entries]) if (!entry.over) call(entry);
  }

  private end(entry: Entry, error: TrunklineError): void {
    this.remove(entry, false);
    entry.input.ended(error);
  }

  private accepted(session: Session, batch: Uint8Array, at: number): void {
    const answer = session.decode(payload.accepted, batch, at);
    if (answer === undefined) return;
    const id = readU32(batch, at + OFFSET.line);
    const entry = this.entries.get(answer.request);
    // cancelled meanwhile, or a repetition: its snapshot is for nobody
    if (entry === undefined || entry.line?.id === id) return;
    const sequence = readU53(batch, at + OFFSET.sequence);
    const epoch = paramsKey(answer.epoch);
    this.join(entry, id, sequence, answer.snapshot);
    const lost = this.historyLost(entry, epoch, answer.resumed);
    if (lost) entry.resume = 0;
    if (!answer.snapshot) entry.resume = sequence;
    entry.epoch = epoch;
    const generation = readU32(batch, at + OFFSET.generation);
    if (lost) {
      entry.gapDue = true;
      Promise.resolve().then(() => entry.tellGap());
    }
    const { snapshot, resumed, status } = answer;
    entry.input.accepted({ sequence, epoch, generation, snapshot, resumed }, status === 'stale' ? 'stale' : 'live');
  }

  private join(entry: Entry, id: number, sequence: number, snapshot: boolean): void {
    this.leave(entry);
    const known = this.lines.get(id);
    const joining = snapshot ? entry : undefined;
    entry.joined = sequence;
    if (known === undefined) {
      entry.floor = 0;
      entry.line = new Line(id, entry, joining);
      this.lines.set(id, entry.line);
      return;
    }
    entry.floor = sequence;
    entry.line = known;
    known.add(entry);
    known.joining = joining;
  }

  private historyLost(entry: Entry, epoch: string, resumed: boolean): boolean {
    if (entry.resuming && !resumed) return true;
    return entry.resume > 0 && entry.epoch !== '' && entry.epoch !== epoch;
  }

  private refused(session: Session, batch: Uint8Array, at: number): boolean {
    const answer = session.decode(payload.refused, batch, at);
    if (answer === undefined) return true;
    const entry = this.entries.get(answer.request);
    // an id that was ours: it crossed with our CANCEL; any other is about something that another role sent
    if (entry === undefined) return answer.request > 0 && answer.request <= this.lastRequest;
    this.remove(entry, false);
    const { message, retryable, position } = answer;
    const more = { retryable, position: position === 0 ? undefined : position };
    entry.input.refused(new TrunklineError(knownCode(answer.code, 'REFUSED'), message || undefined, more));
    return true;
  }

  /** Returns whether anybody here has the line. */
  data(session: Session, batch: Uint8Array, start: number, end: number): boolean {
    const line = this.lines.get(readU32(batch, start + OFFSET.line));
    if (line === undefined) return false;
    const flags = batch[start + OFFSET.flags]!;
    if ((flags & (Flag.SNAPSHOT | Flag.SNAPSHOT_END)) !== 0) this.snapshot(session, line, batch, start, flags);
    else this.live(session, line, batch, start, end);
    if ((flags & Flag.FINAL) !== 0) {
      for (const entry of [...line.entries]) if (!entry.over) this.end(entry, new TrunklineError('COMPLETED'));
    }
    return true;
  }

  private live(session: Session, line: Line, batch: Uint8Array, start: number, end: number): void {
    if (line.only !== undefined) {
      this.liveOf(session, line.only, batch, start, end);
      return;
    }
    const { entries } = line;
    const count = entries.length;
    let done = 0;
    for (let index = 0; index < count; index++) entries[index]!.tellGap();
    // the same throughout a run
    const generation = readU32(batch, start + OFFSET.generation);
    for (let at = start, next = start; at < end; at = next) {
      next = at + readU32(batch, at);
      const message = new Message(session, batch, at);
      const sequence = readU53(batch, at + OFFSET.sequence);
      for (let index = 0; index < count; index++) {
        const entry = entries[index]!;
        if (entry.over || sequence <= entry.floor) continue;
        // conflation and redelivery may bring an older one behind a newer one
        if (sequence > entry.resume) entry.resume = sequence;
        entry.input.message(message, sequence, generation);
      }
      if (settle(message)) done += next - at;
    }
    if (done > 0) session.consume(done);
  }

  /** The same for a line with one entry. Another one may join meanwhile: what comes in this run is not for that one. */
  private liveOf(session: Session, entry: Entry, batch: Uint8Array, start: number, end: number): void {
    let done = 0;
    entry.tellGap();
    const generation = readU32(batch, start + OFFSET.generation);
    for (let at = start, next = start; at < end; at = next) {
      next = at + readU32(batch, at);
      const message = new Message(session, batch, at);
      const sequence = readU53(batch, at + OFFSET.sequence);
      if (!entry.over && sequence > entry.floor) {
        if (sequence > entry.resume) entry.resume = sequence;
        entry.input.message(message, sequence, generation);
      }
      if (settle(message)) done += next - at;
    }
    if (done > 0) session.consume(done);
  }

  private snapshot(session: Session, line: Line, batch: Uint8Array, at: number, flags: number): void {
    const entry = line.joining;
    if ((flags & Flag.SNAPSHOT_END) !== 0) {
      line.joining = undefined;
      if (entry !== undefined) entry.resume = Math.max(entry.resume, entry.joined);
      session.consume(readU32(batch, at));
      return;
    }
    const message = new Message(session, batch, at);
    if (entry !== undefined) {
      entry.tellGap();
      const { sequence, generation } = message;
      if (entry.resuming) entry.resume = sequence;
      if (!entry.over) entry.input.message(message, sequence, generation);
    }
    if (settle(message)) session.consume(message.length);
  }
}

/** Codes of a newer peer read as a refusal by the source: nobody may take them for a good end. */
function endError(end: { code: string; message: string; exit: number | undefined }): TrunklineError {
  const code = end.code === '' ? 'COMPLETED' : knownCode(end.code, 'REFUSED');
  return new TrunklineError(code, end.message || undefined, { exit: end.exit });
}
