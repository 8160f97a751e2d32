import { Timer, type TimerOwner } from '@trunkline/proto';
import type { Core } from './core.js';
import type { ServiceDefinition } from './service.js';
import type { Upstream } from './upstream.js';

/** First in, first out, without moving what is in it. */
class Fifo {
  private items: Upstream[] = [];
  private head = 0;

  get size(): number {
    return this.items.length - this.head;
  }

  push(upstream: Upstream): void {
    this.items.push(upstream);
  }

  /** Keeps only those, in their order. */
  retain(wanted: (upstream: Upstream) => boolean): void {
    this.items = this.items.filter((each, index) => index >= this.head && wanted(each));
    this.head = 0;
  }

  peek(): Upstream | undefined {
    return this.items[this.head];
  }

  shift(): void {
    this.head++;
    if (this.head === this.items.length) {
      this.items = [];
      this.head = 0;
    } else if (this.head > 8192) {
      this.items = this.items.slice(this.head);
      this.head = 0;
    }
  }
}

/** Withdrawn requests that may stand in the queue before they are swept out of it. */
const SWEEP_FROM = 64;

/**
 * Requests that may be unanswered before anything is known of the provider, and the least it is brought down to; more
 * only as its answers come fast, up to `requestWindow`. One that takes its time is not given a longer queue.
 */
const FIRST_ALLOWANCE = 64;
/** Shares of `resendAfter`: an answer within the one is fast and adds one, one beyond the other is slow and takes one. */
const FAST = 1 / 8;
const SLOW = 1 / 2;

/**
 * Lets at most `requestWindow` requests be unanswered at one provider; the rest wait their turn (rule 4). A request
 * that got no answer in its time is sent again in its place: it is unanswered still.
 */
export class Pacer {
  /** The provider is down: nothing is let through while its upstreams are being closed. */
  paused = false;
  private readonly waiting = new Fifo();
  private inFlight = 0;
  private allowance = FIRST_ALLOWANCE;
  /** Those in the queue that were closed; at most, as some of them came to their turn meanwhile. */
  private withdrawn = 0;

  /** Requests that wait for their turn, withdrawn ones included. */
  get size(): number {
    return this.waiting.size;
  }

  get unanswered(): number {
    return this.inFlight;
  }

  add(upstream: Upstream): void {
    if (!upstream.queued) {
      upstream.queued = true;
      this.waiting.push(upstream);
    }
    this.advance();
  }

  /** One that waits was closed: where the provider answers nothing, those must not pile up behind it. */
  withdraw(): void {
    this.withdrawn++;
    if (this.withdrawn < SWEEP_FROM || this.withdrawn * 2 < this.waiting.size) return;
    this.withdrawn = 0;
    this.waiting.retain(({ state }) => state !== 'closed');
  }

  /** An answer came `wait` ms after the REQUEST; both in ms. */
  measure(wait: number, { resendAfter, requestWindow }: ServiceDefinition): void {
    if (wait < resendAfter * FAST) {
      if (this.allowance < requestWindow) this.allowance++;
    } else if (wait > resendAfter * SLOW && this.allowance > FIRST_ALLOWANCE) {
      this.allowance--;
    }
  }

  /** An upstream was answered, refused or closed. */
  leave(upstream: Upstream): void {
    upstream.inFlight = false;
    this.inFlight--;
    this.advance();
  }

  private advance(): void {
    if (this.paused) return;
    for (let next = this.waiting.peek(); next !== undefined; next = this.waiting.peek()) {
      if (next.state === 'queued') {
        const { requestWindow } = next.stream.service.definition;
        if (this.inFlight >= Math.min(requestWindow, this.allowance)) return;
        next.inFlight = true;
        this.inFlight++;
      }
      this.waiting.shift();
      next.queued = false;
      if (next.state === 'queued') next.request();
    }
  }
}

/** Probes sent to one provider at one time, and the pause between two such bursts, ms. */
const BURST = 256;
const PAUSE = 5;

/** Sends the probes of one provider in paced bursts, so that 100,000 silent streams never stall live traffic (rule 5). */
export class Prober implements TimerOwner {
  private readonly due = new Fifo();
  private sent = 0;
  private readonly timer = new Timer(this);

  constructor(private readonly core: Core) {}

  add(upstream: Upstream): void {
    if (upstream.probing) return;
    upstream.probing = true;
    this.due.push(upstream);
    this.advance();
  }

  private advance(): void {
    for (let next = this.due.peek(); next !== undefined && this.sent < BURST; next = this.due.peek()) {
      this.due.shift();
      next.probing = false;
      if (next.state !== 'live' && next.state !== 'stale') continue;
      this.sent++;
      next.probe();
    }
    if (this.sent > 0 && !this.timer.active) this.core.context.timers.start(this.timer, PAUSE);
  }

  onTimer(): void {
    this.sent = 0;
    this.advance();
  }

  /** The provider is gone, and with it whatever was to be probed. */
  close(): void {
    this.due.retain(() => false);
    this.sent = 0;
    this.core.context.timers.stop(this.timer);
  }
}
