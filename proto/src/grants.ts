import type { SessionContext } from './session-types.js';
import { Timer, type TimerOwner } from './timers.js';

/**
 * Most bytes that are consumed before the peer is told; and where it was told less than `CREDIT_PAUSE` ms ago, so that a
 * fast stream costs one CREDIT for many batches and a slow one shows at once who is behind.
 */
const CREDIT_STEP = 32 * 1024;
const FAST_CREDIT_STEP = 1024 * 1024;
const CREDIT_PAUSE = 20;

/** The receiver's side of credit: when the peer is told how much more it may send (PROTOCOL.md M-38). */
export class Grants implements TimerOwner {
  private consumed = 0;
  private announced: number;
  private stopped = false;
  /** When the peer was last told. */
  private toldAt = Number.NEGATIVE_INFINITY;
  /** Active where the peer was told just now and there is more to tell. */
  private readonly timer = new Timer(this);

  constructor(
    private readonly context: SessionContext,
    /** Sends CREDIT with the new limit, bytes. */
    private readonly tell: (limit: number) => void,
  ) {
    this.announced = context.limits.receiveWindow;
  }

  /** The receiver is done with `bytes` of data: they are granted again. */
  consume(bytes: number): void {
    this.consumed += bytes;
    this.onTimer();
  }

  onTimer(): void {
    const { limits, clock, timers } = this.context;
    const limit = this.consumed + limits.receiveWindow;
    const untold = limit - this.announced;
    const most = limits.receiveWindow / 4;
    const little = untold < Math.min(FAST_CREDIT_STEP, most);
    if (untold < Math.min(CREDIT_STEP, most) || (little && this.timer.active) || this.stopped) return;
    const now = clock.now();
    const wait = this.toldAt + CREDIT_PAUSE - now;
    if (little && wait > 0) {
      timers.start(this.timer, wait);
      return;
    }
    timers.stop(this.timer);
    this.toldAt = now;
    this.announced = limit;
    this.tell(limit);
  }

  /** The session is over: nothing is told any more. */
  stop(): void {
    this.stopped = true;
    this.context.timers.stop(this.timer);
  }
}
