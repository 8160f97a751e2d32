import type { EndEvent, GapEvent, StatusEvent } from '@trunkline/subscriber/core';
import type { Ending } from '../../../../dispatcher/dist/stream.js';
import type { Handle, SeenMessage, Segment } from '../handle.js';
import type { Entry, StreamLedger } from '../ledger.js';
import type { Run } from '../provider-part.js';
import { type Body, FINAL_CODES, REFUSED_PARAMS } from '../scenario.js';
import { Checker } from './checker.js';

/** Every request is answered once per session, and what was refused is over. */
export class Answers extends Checker {
  readonly name = 'answers';
  readonly rules = '2';
  private readonly answered = new Map<Handle, number>();

  override accepted(handle: Handle): void {
    const { losses } = handle;
    this.check(handle.options.text !== REFUSED_PARAMS.text, () => `${handle}: accepted what a provider refuses`);
    this.check(this.answered.get(handle) !== losses, () => `${handle}: accepted twice in one session`);
    this.check(handle.ended === undefined, () => `${handle}: accepted after its end`);
    this.answered.set(handle, losses);
  }

  override end(handle: Handle, end: EndEvent): void {
    this.check(this.answered.get(handle) !== -1, () => `${handle}: ended twice`);
    this.answered.set(handle, -1);
    if (handle.refused) {
      const { text, mode } = handle.options;
      const clash = mode === 'group' && end.code === 'OVERFLOW_NOT_ALLOWED';
      const expected = text === REFUSED_PARAMS.text || clash || this.sim.reloads > 0;
      this.check(expected, () => `${handle}: refused with ${end.code} ${end.message}`);
    }
  }

  override quiet(): void {
    for (const handle of this.sim.handles) {
      this.check(this.answered.has(handle), () => `${handle}: never answered`);
    }
  }
}

/** After unsubscribe, or the end, no handler is called. */
export class Silence extends Checker {
  readonly name = 'silence';
  readonly rules = '8';

  override message(handle: Handle): void {
    this.check(!handle.left, () => `${handle}: a message after unsubscribe`);
    this.check(handle.ended === undefined, () => `${handle}: a message after the end`);
  }

  override status(handle: Handle): void {
    this.check(!handle.left && handle.ended === undefined, () => `${handle}: a status after the end`);
  }

  override gap(handle: Handle): void {
    this.check(!handle.left && handle.ended === undefined, () => `${handle}: a gap after the end`);
  }
}

/** Responses are of the request and of the generation that was told before them. */
export class Generations extends Checker {
  readonly name = 'generations';
  readonly rules = '1, 7';

  override message(handle: Handle, segment: Segment, { body, generation, snapshot }: SeenMessage): void {
    const { code, text } = handle.options;
    this.check(body.c === code && body.q === text, () => `${handle}: got a response of ${body.c} ${body.q}`);
    this.check(body.g === generation, () => `${handle}: generation ${generation} in the header, ${body.g} in the body`);
    if (segment.damaged || snapshot || this.joins(code)) return;
    this.check(segment.told.has(generation), () => `${handle}: generation ${generation} without a boundary`);
    const late = generation < segment.generation && handle.options.overflow !== 'latest';
    this.check(!late, () => `${handle}: generation ${generation} after ${segment.generation}`);
  }

  /** Several providers answer: their generations interleave. */
  private joins(code: number): boolean {
    return this.sim.reloads > 0 || this.sim.dispatcher?.registry.service(code)?.sendHandler.joins !== undefined;
  }

  override status(handle: Handle, { state, generation }: StatusEvent): void {
    const { segment } = handle;
    if (segment === undefined || state === 'disconnected') return;
    if (!segment.damaged && !this.joins(handle.options.code)) {
      this.check(generation >= segment.generation, () => `${handle}: told ${generation} after ${segment.generation}`);
    }
    segment.generation = generation;
    segment.told.add(generation);
  }

  override dark(): void {
    for (const handle of this.sim.handles) {
      const { state } = handle.subscription;
      // one that asked again meanwhile waits for its answer
      this.check(state !== 'live', () => `${handle}: live while all providers are away`);
    }
  }

  override quiet(): void {
    for (const handle of this.sim.handles) {
      const { state } = handle.subscription;
      this.check(state === 'live', () => `${handle}: ${state} after everything came back`);
    }
  }
}

/** END and FINAL end a stream for everyone, and nothing else does. */
export class Ends extends Checker {
  readonly name = 'ends';
  readonly rules = '10';
  /** When a provider last completed a request, and when the dispatcher last heard of an end. */
  private readonly completed = new Map<string, number>();
  private readonly told = new Map<string, number>();

  override runOver(run: Run): void {
    if (run.ended || FINAL_CODES.includes(run.code)) {
      this.completed.set(`${run.code} ${run.text}`, this.sim.world.now);
    }
  }

  override streamEnded({ stream, born }: StreamLedger, { code }: Ending): void {
    const identity = `${stream.code} ${stream.params}`;
    this.told.set(identity, this.sim.world.now);
    if (code !== 'COMPLETED' && code !== 'EXITED') return;
    const at = this.completed.get(identity) ?? -1;
    this.check(at >= born, () => `${identity}: the stream completed, and no provider said so`);
  }

  override end(handle: Handle, { code, message }: EndEvent): void {
    const { options, since } = handle;
    if (code === 'CLOSED' || handle.refused) return;
    if (code === 'ABORTED' && handle.aborter?.signal.aborted) return;
    if (code === 'COMPLETED' || code === 'EXITED') {
      const at = this.told.get(`${options.code} ${options.text}`) ?? -1;
      this.check(at >= since, () => `${handle}: completed, and its stream did not`);
    } else {
      // a refusal that waits behind messages is all that is left of it when it is unsubscribed meanwhile
      const removed = code === 'SERVICE_REMOVED' || code === 'UNKNOWN_SERVICE';
      const expected =
        (removed && this.sim.reloads > 0) || (code === 'REFUSED' && options.text === REFUSED_PARAMS.text);
      this.check(expected, () => `${handle}: ended with ${code} ${message}`);
    }
  }

  override callSettled(code: number, text: string, failure: string | undefined, body: Body | undefined): void {
    const expected = ['TIMEOUT', 'ABORTED', 'CLOSED', 'COMPLETED', 'SERVICE_REMOVED', 'UNKNOWN_SERVICE'];
    this.check(failure === undefined || expected.includes(failure), () => `request of ${code} failed with ${failure}`);
    const right = body === undefined || (body.c === code && body.q === text);
    this.check(right, () => `request of ${code} ${text} was answered for ${body?.c} ${body?.q}`);
  }

  override quiet(): void {
    const { dispatcher } = this.sim;
    for (const handle of this.sim.handles) {
      const { segment, options } = handle;
      const stream = segment?.ledger?.stream;
      const known = stream !== undefined && dispatcher?.core.lines.get(stream.line) === stream;
      this.check(known, () => `${handle}: its stream is gone and it was not told`);
      this.check(!FINAL_CODES.includes(options.code), () => `${handle}: a final response did not end it`);
    }
  }
}

/** Responses come in order, none twice and none missing without a GAP. */
export class Sequences extends Checker {
  readonly name = 'sequences';
  readonly rules = '9, 11';
  /** Who of a group got which live response. */
  private readonly groups = new Map<string, Set<number>>();

  /** Where the streams were when the faults were over. */
  private calm = new Map<StreamLedger, number>();

  override converged(): void {
    // what comes from then on is looked at when all is silent
    if (this.sim.silent) return;
    this.calm = new Map();
    for (const { segment } of this.sim.handles) {
      if (segment?.ledger !== undefined) this.calm.set(segment.ledger, segment.ledger.sequence);
    }
  }

  override accepted(handle: Handle, segment: Segment): void {
    const before = handle.segments.at(-2);
    for (const other of this.sim.handles) {
      if (other === handle || other.owner !== handle.owner || other.laneKey !== handle.laneKey) continue;
      segment.shared = true;
      if (other.segment !== undefined) other.segment.shared = true;
    }
    const { ledger, joined } = segment;
    if (!segment.event.resumed || ledger === undefined || segment.damaged) return;
    // rule 9: a resume never joins two histories, and says so when the history no longer reaches back
    const from = before?.epoch ?? '';
    if (before !== undefined) this.check(from === segment.epoch, () => `${handle}: resumed another history`);
    const kept = ledger.keptAt(joined, segment.before);
    const keep = ledger.keeps.at(-1)!.keep.mode;
    if (kept === undefined || keep !== 'ring' || !segment.event.snapshot) return;
    // what the snapshot before did not have is none of this one's business
    const since = Math.max(segment.before, before?.joined ?? 0);
    for (const entry of ledger.entries.slice(since, joined)) {
      const there = kept.includes(entry) || !handle.matches(entry.body);
      this.check(there, () => `${handle}: resumed after ${since}, but ${entry.sequence} is not kept`);
    }
  }

  override message(handle: Handle, segment: Segment, seen: SeenMessage): void {
    const { sequence, snapshot, key, body } = seen;
    const last = segment.delivered.at(-1);
    segment.delivered.push({ sequence, snapshot, key });
    if (segment.damaged) return;
    const { mode, overflow } = handle.options;
    this.check(handle.matches(body), () => `${handle}: the filter does not let ${JSON.stringify(body)} pass`);
    this.check(!segment.seen.has(sequence), () => `${handle}: ${sequence} twice`);
    segment.seen.add(sequence);
    if (segment.event.resumed && segment.before > 0) {
      this.check(sequence > segment.before, () => `${handle}: ${sequence} again after a resume at ${segment.before}`);
    }
    this.stamped(handle, segment, seen);
    if (snapshot) this.snapshot(handle, segment, sequence);
    else {
      segment.live = true;
      this.check(sequence > segment.joined, () => `${handle}: ${sequence} live, joined at ${segment.joined}`);
      if (mode === 'group') this.grouped(handle, segment, sequence);
    }
    const ordered = mode !== 'latest' || last?.snapshot === true || snapshot;
    const before = ordered
      ? last
      : segment.delivered.findLast((each) => each.key === key && each.sequence !== sequence);
    this.check(
      before === undefined || before.sequence < sequence,
      () => `${handle}: ${sequence} after ${before?.sequence}`,
    );
    if (mode === 'broadcast' && overflow !== 'latest' && !snapshot && segment.missed === 0) {
      this.nothingBetween(handle, segment, sequence);
    }
  }

  /** It is the response that the dispatcher stamped with the sequence. */
  private stamped(handle: Handle, { ledger }: Segment, { sequence, body }: SeenMessage): void {
    const entry = ledger?.entries[sequence - 1];
    if (ledger === undefined) return;
    const same = entry?.body.s === body.s && entry.body.n === body.n;
    this.check(same, () => `${handle}: ${sequence} is not what the dispatcher got: ${JSON.stringify(body)}`);
  }

  private snapshot(handle: Handle, segment: Segment, sequence: number): void {
    const { ledger, joined, event } = segment;
    this.check(event.snapshot && !segment.live, () => `${handle}: snapshot ${sequence} after live responses`);
    this.check(sequence <= joined, () => `${handle}: snapshot ${sequence}, joined at ${joined}`);
    const kept = ledger?.keptAt(joined, 0);
    const known = kept === undefined || kept.some((entry) => entry.sequence === sequence);
    this.check(known, () => `${handle}: snapshot ${sequence} is not kept`);
  }

  private nothingBetween(handle: Handle, segment: Segment, sequence: number): void {
    const { ledger } = segment;
    if (ledger === undefined) return;
    for (let missing = segment.cursor + 1; missing < sequence; missing++) {
      const entry = ledger.entries[missing - 1]!;
      this.check(!handle.matches(entry.body), () => `${handle}: ${sequence} without ${missing} and no GAP`);
    }
    segment.cursor = sequence;
  }

  private grouped(handle: Handle, segment: Segment, sequence: number): void {
    const name = `${segment.epoch} ${handle.options.filter?.text} ${handle.options.group}`;
    let taken = this.groups.get(name);
    if (taken === undefined) {
      taken = new Set();
      this.groups.set(name, taken);
    }
    // handles of one process are one member
    if (!segment.shared) this.check(!taken.has(sequence), () => `${handle}: ${sequence} went to another of the group`);
    taken.add(sequence);
  }

  override gap(handle: Handle, gap: GapEvent): void {
    const { segment } = handle;
    if (segment === undefined) return;
    if (gap.reason === 'overflow') {
      const { overflow } = handle.options;
      const lossless = overflow === 'block' || overflow === 'disconnect';
      this.check(!lossless || segment.damaged || segment.shared, () => `${handle}: a GAP of ${gap.count} for overflow`);
      segment.missed += gap.count;
      segment.gaps.push(gap);
      const { ledger, seen } = segment;
      if (ledger === undefined || segment.damaged || segment.shared) return;
      const possible = ledger.entries
        .slice(gap.first - 1, gap.last)
        .filter(({ sequence, body }) => handle.matches(body) && !seen.has(sequence));
      const right = gap.count > 0 && gap.count <= possible.length;
      this.check(
        right,
        () => `${handle}: a GAP of ${gap.count}, ${possible.length} of ${gap.first}-${gap.last} are missing`,
      );
    } else segment.historyGap = true;
  }

  override quiet(): void {
    for (const handle of this.sim.handles) {
      const { segment } = handle;
      if (segment?.ledger !== undefined && !segment.damaged) this.account(handle, segment);
    }
    const groups = new Map<string, Handle[]>();
    for (const handle of this.sim.handles) {
      if (handle.options.mode !== 'group') continue;
      const key = `${handle.segment?.epoch} ${handle.options.group} ${handle.options.filter?.text}`;
      groups.set(key, [...(groups.get(key) ?? []), handle]);
    }
    for (const group of groups.values()) this.shared(group);
  }

  /** Every response since the faults went to one of the group, unless it was told that some did not. */
  private shared(group: readonly Handle[]): void {
    const [first] = group;
    const ledger = first?.segment?.ledger;
    if (first === undefined || ledger === undefined) return;
    const segments = group.map(({ segment }) => segment!);
    if (segments.some(({ damaged }) => damaged)) return;
    const since = Math.max(this.calm.get(ledger) ?? 0, ...segments.map(({ joined }) => joined));
    const absent = ledger.entries
      .slice(since)
      .filter(({ sequence, body }) => first.matches(body) && !segments.some(({ seen }) => seen.has(sequence)));
    const told = absent.filter(({ sequence }) => segments.some((segment) => segment.toldOf(sequence)));
    const conflates = group.some(({ options }) => options.overflow === 'latest');
    const [lost] = conflates ? [] : absent.filter((entry) => !told.includes(entry));
    this.check(lost === undefined, () => `${first}: ${lost?.sequence} went to nobody of the group`);
    const missed = segments.reduce((sum, segment) => sum + segment.missed, 0);
    const right = conflates || absent.length <= missed;
    this.check(right, () => `${first}: ${absent.length} went to nobody of the group, ${missed} were told in GAPs`);
  }

  /** Every response was delivered, filtered, conflated or told in a GAP, exactly once. */
  private account(handle: Handle, segment: Segment): void {
    const { ledger, joined, event, missed, shared, seen } = segment;
    const { mode, overflow } = handle.options;
    if (ledger === undefined) return;
    this.toldLoss(handle, segment);
    if (mode === 'group') return;
    const live = ledger.entries.slice(joined).filter((entry) => handle.matches(entry.body));
    const after = event.resumed ? segment.before : 0;
    const kept = event.snapshot ? ledger.keptAt(joined, after) : [];
    if (kept === undefined) return;
    const due = [...kept.filter((entry) => handle.matches(entry.body)), ...live];
    const absent = due.filter(({ sequence }) => !seen.has(sequence));
    if (mode === 'latest' || overflow === 'latest') {
      this.conflated(handle, segment, due, absent);
      return;
    }
    const told = absent.every(({ sequence }) => segment.toldOf(sequence));
    const right = shared ? absent.length <= missed : absent.length === missed && told;
    this.check(
      right,
      () => `${handle}: ${absent.length} of ${due.length} responses are missing and ${missed} were told in GAPs`,
    );
  }

  /** What is missing was told in a GAP, or made way for a newer response of its key. */
  private conflated(handle: Handle, segment: Segment, due: readonly Entry[], absent: readonly Entry[]): void {
    const { missed, shared, seen } = segment;
    const newest = new Map(due.map((entry) => [entry.key, entry.sequence]));
    const gone = [...newest].filter(([, sequence]) => !seen.has(sequence));
    const untold = gone.find(([, sequence]) => !segment.toldOf(sequence));
    this.check(untold === undefined, () => `${handle}: newest of ${untold?.[0]}, ${untold?.[1]}, is missing`);
    const right = gone.length <= missed && (shared || missed <= absent.length);
    this.check(
      right,
      () =>
        `${handle}: ${absent.length} responses are missing, ${gone.length} the newest of their key; ${missed} were told in GAPs`,
    );
  }

  private toldLoss(handle: Handle, segment: Segment): void {
    const before = handle.segments.at(-2);
    if (before === undefined || handle.options.start === 'live' || segment.event.resumed) return;
    const hadSeen = before.delivered.some(({ snapshot }) => !snapshot);
    this.check(!hadSeen || segment.historyGap, () => `${handle}: history was lost and it was not told`);
  }
}
