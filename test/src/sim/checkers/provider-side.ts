import type { Dispatcher } from '@trunkline/dispatcher';
import { payload, Type } from '@trunkline/proto';
import type { Stream } from '../../../../dispatcher/dist/stream.js';
import type { Entry, StreamLedger } from '../ledger.js';
import type { Wire } from '../network.js';
import type { Run } from '../provider-part.js';
import { PARAMS, REFUSED_PARAMS } from '../scenario.js';
import { Checker, type WireMessage, wireOf } from './checker.js';

const texts = new Set([...PARAMS, REFUSED_PARAMS].map(({ text }) => text));

/** Providers are called once per distinct request and session, and only for what somebody asked for. */
export class ProviderCalls extends Checker {
  readonly name = 'provider calls';
  readonly rules = '1, 6';
  private readonly started = new WeakMap<object, Map<string, number>>();

  override runStarted(run: Run): void {
    const { session, code, text, line } = run;
    if (wireOf(session.link)?.damagedAt !== undefined) return;
    for (const other of this.sim.runs) {
      const twice =
        other !== run && !other.over && other.session === session && other.code === code && other.text === text;
      this.check(!twice, () => `${code} ${text}: runs twice in one session of ${run.provider.name}`);
    }
    const keys = this.keys(run);
    const key = `${line}:${run.subscription.generation}`;
    this.check(!keys.has(key), () => `${code} ${text}: called twice for generation ${run.subscription.generation}`);
    keys.set(key, run.id);
  }

  private keys({ session }: Run): Map<string, number> {
    let keys = this.started.get(session);
    if (keys === undefined) {
      keys = new Map();
      this.started.set(session, keys);
    }
    return keys;
  }

  /** What a provider forgot, or withdrew, it may be called for again. */
  override forgotten(runs: Iterable<Run>): void {
    for (const run of runs) this.keys(run).delete(`${run.line}:${run.subscription.generation}`);
  }

  override quiet(): void {
    const counts = new Map<string, number>();
    for (const { code, text } of this.sim.runs) {
      const identity = `${code} ${text}`;
      counts.set(identity, (counts.get(identity) ?? 0) + 1);
    }
    const wanted = new Set([...this.sim.handles].map(({ options }) => `${options.code} ${options.text}`));
    for (const identity of counts.keys())
      this.check(wanted.has(identity), () => `${identity}: runs and nobody wants it`);
    for (const identity of wanted) {
      const count = counts.get(identity) ?? 0;
      const most = this.sendHandlerOf(identity) === 'all' ? this.sim.members.length : 1;
      this.check(count >= 1 && count <= most, () => `${identity}: wanted, and runs ${count} times`);
    }
  }

  private sendHandlerOf(identity: string): string | undefined {
    const code = Number.parseInt(identity, 10);
    return this.sim.dispatcher?.registry.service(code)?.definition.sendHandler;
  }
}

/** What goes upstream is the request's identity and nothing of anybody's options. */
export class OptionsStay extends Checker {
  readonly name = 'options stay';
  readonly rules = '14';

  override sent(_wire: Wire, { type, code, batch, at }: WireMessage): void {
    if (type !== Type.REQUEST && type !== Type.PROBE) return;
    const { params } = payload.readPayload(payload.upstream, batch, at);
    const text = new TextDecoder().decode(params);
    this.check(texts.has(text), () => `${code}: asked upstream for ${text}`);
  }
}

/** Streams without subscribers live for `linger`, not shorter and not longer. */
export class Linger extends Checker {
  readonly name = 'linger';
  readonly rules = '8';
  /** Streams as they were after the last step; with the time of the last leave, where nobody is left. */
  private known = new Map<Stream, Left | undefined>();

  override dispatcherStarted(): void {
    this.known.clear();
  }

  override dispatcherStep({ core }: Dispatcher, streams: readonly Stream[]): void {
    const { now } = this.sim.world;
    const known = new Map<Stream, Left | undefined>();
    for (const stream of streams) {
      const left = stream.members > 0 ? undefined : this.left(stream);
      known.set(stream, left);
      if (left === undefined) continue;
      const { at, linger } = left;
      const wait = now - Math.max(at, this.sim.awakeSince);
      const due = linger > 0 && wait <= linger + 1;
      this.check(due, () => `${stream.code}: nobody left for ${wait} ms, linger ${linger}`);
    }
    // with a dispatcher that stops, everything goes at once
    if (!core.stopping) for (const [stream, left] of this.known) if (!known.has(stream)) this.gone(stream, left);
    this.known = known;
  }

  private left(stream: Stream): Left {
    const { joins } = this.sim.ledgers.of(stream);
    const before = this.known.get(stream);
    // somebody may have come and gone within one step
    if (before?.joins === joins) return before;
    return { at: this.sim.world.stepBegan, linger: stream.service.definition.linger, joins };
  }

  private gone(stream: Stream, left: Left | undefined): void {
    // a stream that no provider had answered has nothing to linger for
    if (this.sim.ledgers.of(stream).ended || stream.status === 'pending') return;
    const { now, stepBegan } = this.sim.world;
    const { at, linger } = left ?? { at: stepBegan, linger: stream.service.definition.linger };
    this.check(now - at >= linger, () => `${stream.code}: gone ${now - at} ms after the last left, linger ${linger}`);
  }
}

interface Left {
  readonly at: number;
  readonly linger: number;
  /** Times somebody had joined by then. */
  readonly joins: number;
}

/** Between a provider's handler and the stream nothing is lost, doubled or mixed up. */
export class Arrivals extends Checker {
  readonly name = 'arrivals';
  readonly rules = '7, 9';
  private readonly lastOf = new Map<number, number>();
  private readonly runs = new Map<number, Run>();
  private readonly generations = new WeakMap<StreamLedger, Map<string, number>>();

  override runStarted(run: Run): void {
    this.runs.set(run.id, run);
  }

  override arrived(ledger: StreamLedger, { body, generation, sequence }: Entry): void {
    this.check(sequence === ledger.sequence, () => `${body.c}: sequence ${sequence}, not ${ledger.sequence}`);
    this.check(body.g === generation, () => `${body.c}: generation ${generation} of a run of ${body.g}`);
    const run = this.runs.get(body.s);
    const wire = wireOf(run?.session.link);
    const last = this.lastOf.get(body.s) ?? 0;
    this.lastOf.set(body.s, body.n);
    // a link that is closed meanwhile tells no more what became of its connection
    if (wire === undefined || wire.damagedAt !== undefined) return;
    this.check(body.n === last + 1, () => `${body.c}: response ${body.n} of run ${body.s} after ${last}`);
    let newest = this.generations.get(ledger);
    if (newest === undefined) {
      newest = new Map();
      this.generations.set(ledger, newest);
    }
    const before = newest.get(body.p) ?? 0;
    this.check(generation >= before, () => `${body.c}: ${body.p} of generation ${generation} after ${before}`);
    newest.set(body.p, generation);
  }

  override quiet(): void {
    for (const { id, taken, session, code, text } of this.sim.runs) {
      if (wireOf(session.link)?.damagedAt !== undefined) continue;
      const arrived = this.lastOf.get(id) ?? 0;
      this.check(arrived === taken, () => `${code} ${text}: ${taken} responses were taken and ${arrived} arrived`);
    }
  }
}
