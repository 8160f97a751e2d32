import { DataMessage, Flag, TrunklineError } from '@trunkline/proto';
import type { Consumption } from './consumption.js';

export interface NackOptions {
  /** Not delivered again before, ms, 0..2^31-1. Default 0. */
  readonly delayMs?: number;
  /** Goes with the message if it is brought to the dead letter queue; at most 1000 characters. */
  readonly reason?: string;
}

export interface ExtendOptions {
  /** Time from now on, ms, 1..2^31-1. Default: the queue's ackTimeout. */
  readonly timeMs?: number;
}

/** A message of a queue. The group gets it again unless it is acknowledged. */
export class QueueMessage extends DataMessage {
  /** Acknowledged or rejected already, by the handler or for it. */
  settled = false;

  constructor(
    private readonly consumption: Consumption,
    /** Names the time that the message was delivered in: what is held ends with the session. */
    readonly life: number,
    batch: Uint8Array,
    at: number,
  ) {
    super(batch, at);
  }

  /** How often the message was delivered, this time counted; never falls, not even when the dispatcher restarts. */
  get deliveries(): number {
    return this.generation;
  }

  get redelivered(): boolean {
    return (this.flags & Flag.REDELIVERED) !== 0;
  }

  /**
   * Done with. Resolves when that is stored: then the message never comes again.
   * @throws TrunklineError NOT_HELD: too late, or the second time: the message may come again, to somebody;
   * DISCONNECTED: the session or the consumption ended before the answer
   */
  ack(): Promise<void> {
    return this.settle(() => this.consumption.ack(this));
  }

  /** Have it delivered again. @throws TrunklineError NOT_HELD, DISCONNECTED, OPTION_INVALID */
  nack(options: NackOptions = {}): Promise<void> {
    return this.settle(() => this.consumption.nack(this, options));
  }

  /** Needs more time. @throws TrunklineError NOT_HELD, DISCONNECTED, OPTION_INVALID */
  extend(options: ExtendOptions = {}): Promise<void> {
    if (this.settled) return Promise.reject(notHeld(this.sequence));
    return this.consumption.extend(this, options);
  }

  private async settle(how: () => Promise<void>): Promise<void> {
    if (this.settled) throw notHeld(this.sequence);
    this.settled = true;
    try {
      await how();
    } catch (error) {
      if (error instanceof TrunklineError && error.code === 'OPTION_INVALID') this.settled = false;
      throw error;
    }
  }
}

export function notHeld(sequence: number, message = 'is not held (any more)'): TrunklineError {
  return new TrunklineError('NOT_HELD', `message ${sequence} ${message}`);
}
