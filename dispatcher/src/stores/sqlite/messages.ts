import type { ErrorCode } from '@trunkline/proto/errors';
import type { Commit, Damage } from '../../queues/store.js';

/** How a durable store is set up; what is not given follows from the size of the device. */
export interface SqliteOptions {
  /** Made if it is missing. One store per directory, and one process per store. */
  readonly directory: string;
  /** Bytes of log after which it is moved into the database. Default: a sixteenth of the device, 1 to 8 MiB. */
  readonly logBytes?: number;
  /**
   * Bytes set aside on the device so that trims and records find room when it is full.
   * Default: `logBytes` and 1 MiB.
   */
  readonly reserveBytes?: number;
}

/** What the store asks its worker. Answered in the order of asking. */
export type Request =
  | { readonly id: number; readonly kind: 'open' | 'usage' | 'close' }
  | { readonly id: number; readonly kind: 'read'; readonly queue: number; readonly from: number; readonly max: number }
  | {
      readonly id: number;
      readonly kind: 'commit';
      /** Failed commits the asker had heard of: a commit sent before it heard of one fails with it. */
      readonly failures: number;
      readonly commit: Commit;
    };

/** An error as it crosses from the worker. */
export interface Fault {
  readonly code: ErrorCode;
  readonly message: string;
  readonly damage?: Damage;
}

export type Reply =
  | { readonly id: number; readonly value: unknown }
  | {
      readonly id: number;
      readonly fault: Fault;
      /** Failed commits so far; only with the answer to a commit. */
      readonly failures?: number;
    };
