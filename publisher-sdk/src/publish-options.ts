import { type Meta, TrunklineError } from '@trunkline/proto';

/** What a message of a queue carries beside its body. */
export interface PublishOptions extends Partial<Meta> {
  /** The body, a string or bytes, is JSON already; it is sent as it is and marked so. */
  readonly json?: boolean;
  /** How long to wait for the confirmation, ms, 1..2^31-1. Default 300,000. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

const DEFAULT_TIMEOUT = 300_000;
const MAX_TIMEOUT = 2 ** 31 - 1;

/** @throws TrunklineError OPTION_INVALID */
export function timeoutOf({ timeoutMs = DEFAULT_TIMEOUT }: PublishOptions): number {
  if (Number.isSafeInteger(timeoutMs) && timeoutMs >= 1 && timeoutMs <= MAX_TIMEOUT) return timeoutMs;
  throw new TrunklineError('OPTION_INVALID', `timeoutMs must be an integer 1..${MAX_TIMEOUT}`);
}

/** @throws TrunklineError ABORTED */
export function checkSignal(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new TrunklineError('ABORTED', undefined, { cause: signal.reason });
}
