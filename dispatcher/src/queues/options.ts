import type { TrunklineError } from '@trunkline/proto';

/** How a queue is kept. Times are milliseconds; 0 is "no bound" or "never" everywhere. */
export interface QueueOptions {
  /** `memory`: a ring that ends with the process. `disk`: in the store. */
  readonly storage: 'memory' | 'disk';
  readonly maxMessages: number;
  readonly maxBytes: number;
  readonly maxAge: number;
  /** Messages that every group is past stay for so long, for groups that come later. */
  readonly retain: number;
  /** What happens to a publish over `maxMessages` or `maxBytes`. */
  readonly full: 'dropOldest' | 'refuse';
  /** A message that is not acknowledged in this time is delivered again. */
  readonly ackTimeout: number;
  /** A message that was delivered so often in vain goes to the dead letter queue, or is dropped where there is none. */
  readonly maxDeliveries: number;
  /** Service code of the dead letter queue. */
  readonly deadLetter: number;
  /** Largest message with header, bytes. */
  readonly maxMessage: number;
}

export const MIB = 1024 * 1024;
export const queueDefaults: QueueOptions = {
  storage: 'disk',
  maxMessages: 0,
  maxBytes: 256 * MIB,
  maxAge: 0,
  retain: 0,
  full: 'refuse',
  ackTimeout: 30_000,
  maxDeliveries: 0,
  deadLetter: 0,
  maxMessage: 50 * MIB,
};

/** A group's filter. */
export interface MessageFilter {
  readonly text: string;
  /** Never throws. */
  matches(bytes: Uint8Array, at: number): boolean;
  /** Set where a stored filter does not compile any more: nobody may read by it. */
  readonly broken?: TrunklineError;
}

/** Where a new group begins. */
export type GroupStart = 'earliest' | 'latest' | { readonly after: number };
