import type { Dispatcher } from '@trunkline/dispatcher';
import { Type } from '@trunkline/proto';
import type { Provider } from '../../../../dispatcher/dist/provider.js';
import type { Stream } from '../../../../dispatcher/dist/stream.js';
import type { Upstream } from '../../../../dispatcher/dist/upstream.js';
import type { Wire } from '../network.js';
import { Checker, type Watched, type WireMessage, wireOf } from './checker.js';
import type { UpstreamRecord, WireBook } from './wire-book.js';

/** Ticks of the prober's pause and of rounding, ms. */
const SLACK = 20;

/** At most one upstream per provider; none missing where a provider is up. */
export class OneUpstream extends Checker {
  readonly name = 'one upstream';
  readonly rules = '1';

  override dispatcherStep(_dispatcher: Dispatcher, streams: readonly Stream[]): void {
    for (const stream of streams) {
      const { upstreams, service } = stream;
      if (upstreams.length > 1) this.several(stream);
      for (const { provider } of upstreams) {
        this.check(provider.up, () => `${stream.code}: upstream at ${provider.label}, which is down`);
      }
      if (upstreams.length > 0) continue;
      this.check(service.candidates(stream.code).length === 0, () => `${stream.code}: no upstream`);
    }
  }

  private several({ code, upstreams, service }: Stream): void {
    const providers = new Set(upstreams.map(({ provider }) => provider));
    this.check(providers.size === upstreams.length, () => `${code}: two upstreams at one provider`);
    this.check(service.sendHandler.joins === true, () => `${code}: ${upstreams.length} upstreams, one chosen`);
  }

  override dispatcherLook(_dispatcher: Dispatcher, streams: readonly Stream[]): void {
    const identities = new Set(streams.map(({ code, params }) => `${code} ${params}`));
    this.check(identities.size === streams.length, () => `${streams.length} streams for ${identities.size} requests`);
  }
}

/** No REQUEST again before `resendAfter` nor after an answer; and again when it is due. */
export class Resend extends Checker {
  readonly name = 'resend';
  readonly rules = '3';

  constructor(
    sim: Watched,
    private readonly book: WireBook,
  ) {
    super(sim);
  }

  private serviceOf(code: number) {
    return this.sim.scenario.configuration.services.find(({ from, to }) => from <= code && code <= to)!;
  }

  override sent(wire: Wire, { type, code, line, generation }: WireMessage): void {
    if (type !== Type.REQUEST || wire.damagedAt !== undefined) return;
    const { requests, lastRequest, askedFrom, heard, waiting } = this.book.record(wire, line, generation);
    // what is sent in one step may have been decided before the answer in it
    if (requests === 0 || waiting || heard >= this.sim.world.stepBegan) return;
    this.check(lastRequest > heard, () => `${code}: requested again after an answer`);
    const wait = this.sim.world.now - askedFrom;
    const least = this.serviceOf(code).resendAfter;
    this.check(wait >= least, () => `${code}: sent again after ${wait} ms, not before ${least}`);
  }

  override dispatcherLook(dispatcher: Dispatcher, streams: readonly Stream[]): void {
    // a stopping dispatcher asks providers for nothing
    if (dispatcher.core.stopping) return;
    for (const { stream, upstream, record } of watchedUpstreams(streams, this.book)) {
      if (upstream.state !== 'requested') continue;
      const most = stream.service.definition.resendCap * 1.2 + SLACK;
      const wait = this.sim.world.now - Math.max(record.lastRequest, this.sim.awakeSince);
      this.check(wait <= most, () => `${stream.code}: not sent again for ${wait} ms`);
    }
  }
}

/** Unanswered requests per provider. */
export class RequestWindow extends Checker {
  readonly name = 'request window';
  readonly rules = '4';

  override dispatcherStep(dispatcher: Dispatcher): void {
    for (const provider of providersOf(dispatcher)) {
      const requested = [...provider.upstreams].filter(({ state }) => state === 'requested');
      const window = Math.max(0, ...requested.map(({ stream }) => stream.service.definition.requestWindow));
      this.check(
        requested.length <= window,
        () => `${provider.label}: ${requested.length} unanswered, ${window} allowed`,
      );
      const counted = provider.pacer.unanswered;
      this.check(
        counted === requested.length,
        () => `${provider.label}: ${requested.length} unanswered, counted ${counted}`,
      );
    }
  }
}

/** A silent stream is probed in time, and stale after too many unanswered probes. */
export class Probe extends Checker {
  readonly name = 'probe';
  readonly rules = '5';

  constructor(
    sim: Watched,
    private readonly book: WireBook,
  ) {
    super(sim);
  }

  override dispatcherLook(dispatcher: Dispatcher, streams: readonly Stream[]): void {
    // one that stops sends nothing new upstream
    if (dispatcher.core.stopping) return;
    const { now } = this.sim.world;
    for (const { stream, upstream, record } of watchedUpstreams(streams, this.book)) {
      if (upstream.state !== 'live' && upstream.state !== 'stale') continue;
      const { probeAfter, probeMisses } = stream.service.definition;
      const quiet = now - Math.max(record.heard, record.lastProbe, this.sim.awakeSince);
      this.check(quiet <= probeAfter + SLACK, () => `${stream.code}: silent for ${quiet} ms and not probed`);
      const silence = now - Math.max(record.heard, this.sim.awakeSince);
      const most = probeAfter * (probeMisses + 1) + SLACK;
      const late = upstream.state === 'live' && silence > most;
      this.check(!late, () => `${stream.code}: live after ${silence} ms of silence, ${most} allowed`);
      const early = upstream.state === 'stale' && record.probes === 0;
      this.check(!early, () => `${stream.code}: stale without a probe`);
    }
  }
}

/** What is live was answered in its own generation: nothing older counts, whatever else went wrong on the way. */
export class OwnAnswers extends Checker {
  readonly name = 'own answers';
  readonly rules = '7';

  constructor(
    sim: Watched,
    private readonly book: WireBook,
  ) {
    super(sim);
  }

  override dispatcherStep(_dispatcher: Dispatcher, streams: readonly Stream[]): void {
    for (const stream of streams) {
      for (const { state, provider, generation } of stream.upstreams) {
        const wire = state === 'live' ? wireOf(provider.session?.link) : undefined;
        const own = wire === undefined || this.book.record(wire, stream.line, generation).heard > 0;
        this.check(own, () => `${stream.code}: live without an answer of generation ${generation}`);
      }
    }
  }
}

export function providersOf(dispatcher: Dispatcher): Set<Provider> {
  const providers = new Set<Provider>();
  for (const { provider } of dispatcher.peers.values()) if (provider !== undefined) providers.add(provider);
  return providers;
}

/** Upstreams whose connection did not lose or double anything, with what the wire saw of them. */
function* watchedUpstreams(
  streams: readonly Stream[],
  book: WireBook,
): Generator<{ stream: Stream; upstream: Upstream; record: UpstreamRecord }> {
  for (const stream of streams) {
    for (const upstream of stream.upstreams) {
      const wire = wireOf(upstream.provider.session?.link);
      if (wire === undefined || wire.damagedAt !== undefined) continue;
      yield { stream, upstream, record: book.record(wire, stream.line, upstream.generation) };
    }
  }
}
