import { DataMessage, Flag, TrunklineError } from '@trunkline/proto';
import type { Consumption } from './consumption.js';
import { integer, text } from './options.js';

const MAX_TIME = 2 ** 31 - 1;
/** Longest reason of a rejection, characters. */
export const MAX_REASON = 1000;

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
   * Done with. Resolves when that is stored: then the message never comes again. Nobody has to wait for it, here as for
   * the others; who does not is not told when it fails.
   * @throws TrunklineError NOT_HELD: too late, or the second time: the message may come again, to somebody;
   * DISCONNECTED: the session or the consumption ended before the answer
   */
  ack(): Promise<void> {
    return optional(this.settle(() => this.consumption.ack(this)));
  }

  /** Have it delivered again. @throws TrunklineError NOT_HELD, DISCONNECTED, OPTION_INVALID */
  nack(options: NackOptions = {}): Promise<void> {
    return checked(
      () => nackTerms(options),
      (terms) => this.settle(() => this.consumption.nack(this, terms)),
    );
  }

  /** Needs more time. @throws TrunklineError NOT_HELD, DISCONNECTED, OPTION_INVALID */
  extend({ timeMs }: ExtendOptions = {}): Promise<void> {
    return checked(
      () => (timeMs === undefined ? 0 : integer('timeMs', timeMs, 1, MAX_TIME)),
      async (time) => {
        if (this.settled) throw notHeld(this.sequence);
        await this.consumption.extend(this, time);
      },
    );
  }

  private async settle(how: () => Promise<void>): Promise<void> {
    if (this.settled) throw notHeld(this.sequence);
    this.settled = true;
    await how();
  }
}

function nackTerms({ delayMs = 0, reason = '' }: NackOptions): Required<NackOptions> {
  integer('delayMs', delayMs, 0, MAX_TIME);
  if (text('reason', reason).length <= MAX_REASON) return { delayMs, reason };
  throw new TrunklineError('OPTION_INVALID', `reason has at most ${MAX_REASON} characters`);
}

/** What is wrong with the call itself is told in any case. */
function checked<Terms>(check: () => Terms, call: (terms: Terms) => Promise<void>): Promise<void> {
  let terms: Terms;
  try {
    terms = check();
  } catch (error) {
    return Promise.reject(error);
  }
  return optional(call(terms));
}

/** Who does not wait for the answer needs none, as the message comes again then: it must not end the process (F26). */
function optional(answer: Promise<void>): Promise<void> {
  answer.catch(() => {});
  return answer;
}

export function notHeld(sequence: number, message = 'is not held (any more)'): TrunklineError {
  return new TrunklineError('NOT_HELD', `message ${sequence} ${message}`);
}
