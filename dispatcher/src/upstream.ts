import { HEADER_BYTES, payload, reportFault, Timer, type TimerOwner, TrunklineError, Type } from '@trunkline/proto';
import type { Core } from './core.js';
import type { Provider } from './provider.js';
import type { Stream } from './stream.js';

export type UpstreamState = 'queued' | 'requested' | 'waiting' | 'live' | 'stale' | 'closed';

/**
 * The life of an upstream subscription (PROTOCOL.md §7).
 *
 * - queued: waits its turn in the provider's request window (rule 4)
 * - requested: sent and not answered; sent again after `resendAfter`, in its place of the window (rules 3 and 4)
 * - waiting: the provider is up but has no handler for the code yet
 * - live: answered; probed when silent (rule 5)
 * - stale: `probeMisses` probes went unanswered; probing goes on
 */
const moves: Record<UpstreamState, readonly UpstreamState[]> = {
  queued: ['requested', 'live', 'closed'],
  requested: ['waiting', 'live', 'closed'],
  waiting: ['queued', 'live', 'closed'],
  live: ['stale', 'waiting', 'closed'],
  stale: ['live', 'waiting', 'closed'],
  closed: [],
};

/** Most bytes that encoding adds to the params of a request. */
const PARAMS_OVERHEAD = 6;

/** An upstream is its own timer: there may be a million of them. */
const owner: TimerOwner = { onTimer: (timer) => (timer as Upstream).onTimer() };

/** One stream at one provider: the only place that sends REQUEST, PROBE and CANCEL upstream. */
export class Upstream extends Timer {
  state: UpstreamState = 'queued';
  readonly generation: number;
  /** Whether it stands in the queue of the provider's pacer. */
  queued = false;
  /** Whether it stands in the queue of the provider's prober. */
  probing = false;
  /** Whether it takes one of the places of the request window. */
  inFlight = false;
  private sent = false;
  /** How often it was asked: REQUESTs before it was answered, PROBEs since it was heard after that. */
  private attempts = 0;
  /** Whole milliseconds, which take no object of their own. */
  private lastHeard = 0;
  /** The next one of the same stream. */
  sibling: Upstream | undefined;
  /** Neighbours in the provider's list. */
  before: Upstream | undefined;
  after: Upstream | undefined;

  constructor(
    readonly stream: Stream,
    readonly provider: Provider,
  ) {
    super(owner);
    this.generation = stream.core.nextGeneration();
    provider.upstreams.add(this);
    provider.pacer.add(this);
  }

  private get core(): Core {
    return this.stream.core;
  }

  /** Returns whether there is such a move; one that there is not changes nothing. */
  private move(next: UpstreamState): boolean {
    if (moves[this.state].includes(next)) {
      this.state = next;
      return true;
    }
    const error = new TrunklineError('STATE_INVALID', `upstream: ${this.state} to ${next}`);
    reportFault(this.core.context.onFault, error);
    return false;
  }

  /** The provider's pacer has a place for it. */
  request(): void {
    if (!this.move('requested')) {
      this.leaveWindow();
      return;
    }
    this.sendRequest();
  }

  private sendRequest(): void {
    if (!this.fits) {
      // not now: whoever made this upstream does not know it yet
      this.core.context.timers.start(this, 0);
      return;
    }
    if (this.sent) this.core.counters.resends++;
    this.lastHeard = Math.ceil(this.core.now());
    this.send(Type.REQUEST);
    this.sent = true;
    this.core.context.timers.start(this, this.resendDelay());
  }

  private get fits(): boolean {
    const most = this.provider.session?.peerMaxMessage ?? 0;
    return HEADER_BYTES + PARAMS_OVERHEAD + this.stream.params.length <= most;
  }

  /** The prober has its turn: asks a silent provider, which registers the subscription if it lost it (rule 5). */
  probe(): void {
    this.attempts++;
    this.core.counters.probes++;
    this.send(Type.PROBE);
  }

  private send(type: number): void {
    if (this.core.stopping) return;
    const { stream, generation } = this;
    this.provider.session?.sendWritten(
      { type, code: stream.code, line: stream.line, generation },
      payload.writeUpstream(stream.params),
    );
  }

  /** Never before `resendAfter`, doubled with every attempt up to the cap, and up to a fifth later. */
  private resendDelay(): number {
    const { resendAfter, resendCap } = this.stream.service.definition;
    const wait = Math.min(resendCap, resendAfter * 2 ** Math.min(this.attempts++, 30));
    return wait * (1 + this.core.context.random.next() / 5);
  }

  /** ACCEPTED, a response, a PROBE_REPLY or a PROBE of this generation came, at `at` of the clock, ms. */
  heard(at: number): void {
    const now = Math.ceil(at);
    if (this.inFlight) this.provider.pacer.measure(now - this.lastHeard, this.stream.service.definition);
    this.lastHeard = now;
    this.attempts = 0;
    if (this.state !== 'live') this.answered();
  }

  private answered(): void {
    if (!this.move('live')) return;
    this.leaveWindow();
    const { probeAfter } = this.stream.service.definition;
    if (probeAfter > 0) this.core.context.timers.start(this, probeAfter);
    else this.core.context.timers.stop(this);
    this.stream.upstreamLive(this);
  }

  /** The provider has no handler for the code yet: asked again later, and at once when it OFFERs (F2). */
  notProvided(): void {
    if (this.state === 'queued' || this.state === 'waiting') return;
    const was = this.state;
    if (!this.move('waiting')) return;
    if (was !== 'requested') this.attempts = 0;
    this.leaveWindow();
    this.core.context.timers.start(this, this.resendDelay());
    if (was !== 'requested') this.stream.upstreamStale(this, 'provider has no handler');
  }

  /** The provider OFFERed the code. */
  offered(): void {
    if (this.state === 'waiting') this.again();
  }

  private again(): void {
    if (!this.move('queued')) return;
    this.provider.pacer.add(this);
  }

  onTimer(): void {
    if (this.state === 'requested') this.requestAgain();
    else if (this.state === 'waiting') this.again();
    else if (this.state === 'live' || this.state === 'stale') this.checkSilence();
  }

  private requestAgain(): void {
    if (this.provider.session?.behind) {
      // the answer may be among what waits to be handled
      this.core.context.timers.start(this, this.stream.service.definition.resendAfter);
      return;
    }
    if (this.fits) {
      this.sendRequest();
      return;
    }
    const message = `the request is larger than ${this.provider.label} takes`;
    this.stream.upstreamEnded(this, { code: 'MESSAGE_TOO_LARGE', message });
  }

  /** Data does not touch the timer: when it fires it looks how long the silence is. */
  private checkSilence(): void {
    const { probeAfter, probeMisses } = this.stream.service.definition;
    const { timers } = this.core.context;
    if (probeAfter === 0) return;
    const silence = this.core.now() - this.lastHeard;
    if (silence < probeAfter) {
      timers.start(this, probeAfter - silence);
      return;
    }
    timers.start(this, probeAfter);
    // what it said may be among what waits to be handled: whether it is silent cannot be told
    if (this.provider.session?.behind) return;
    if (this.state === 'live' && this.attempts >= probeMisses && this.move('stale')) {
      this.stream.upstreamStale(this, 'provider silent');
      if (this.closed) return;
    }
    this.provider.prober.add(this);
  }

  /** The service's times changed with a reload: a timer that runs keeps its phase, an idle one begins. */
  retime(): void {
    const watched = this.state === 'live' || this.state === 'stale';
    const { probeAfter } = this.stream.service.definition;
    if (watched && probeAfter > 0 && !this.active) this.core.context.timers.start(this, probeAfter);
  }

  private get closed(): boolean {
    return this.state === 'closed';
  }

  private leaveWindow(): void {
    if (this.inFlight) this.provider.pacer.leave(this);
  }

  /** Ends it; with `cancel` the provider is told, if it may know of it (rule 8). */
  close(cancel: boolean): void {
    if (this.closed || !this.move('closed')) return;
    this.core.context.timers.stop(this);
    this.provider.upstreams.delete(this);
    if (this.queued) this.provider.pacer.withdraw();
    if (cancel && this.sent) {
      const { stream, generation } = this;
      this.provider.session?.send({ type: Type.CANCEL, code: stream.code, line: stream.line, generation });
    }
    this.leaveWindow();
  }
}
