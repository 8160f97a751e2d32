import { packParams, payload, TrunklineError } from '@trunkline/proto';

/** Where the reading begins (rule 9); `epoch` and `sequence` of an earlier subscription go together. */
export type StartOption = 'kept' | 'live' | { readonly after: number; readonly epoch?: Uint8Array };

export interface SubscribeOptions {
  /** With the code, the identity of the request: bytes, or anything JSON can say (rule 1). */
  readonly params?: unknown;
  /** CEL over `tag`, `key`, `attrs` and `body`; blank is no filter. */
  readonly filter?: string;
  /** Name of a return handler; default: the service's first. */
  readonly return?: string;
  readonly group?: string;
  /** Messages a second per key, for the return handler `latest`. */
  readonly rate?: number;
  /** Default `kept`. After a reconnect a subscription goes on after what it has seen, unless this is `live`. */
  readonly start?: StartOption;
  /** What happens when this subscriber falls behind; default: the service's first. */
  readonly overflow?: 'dropOldest' | 'latest' | 'disconnect' | 'block';
  /** Whether a handler waits for the promise of the one before it. Default true. */
  readonly ordered?: boolean;
  /** Ends the subscription. */
  readonly signal?: AbortSignal;
}

export interface ConsumeOptions {
  /** Consumers of one group share its messages. Left out: a group of its own, which ends with the session. */
  readonly group?: string;
  /** CEL over `tag`, `key`, `attrs` and `body`; the group's, so the same for all of its members. */
  readonly filter?: string;
  /** Most messages that are delivered and not acknowledged, 1..65536. Default 256. */
  readonly window?: number;
  /** Where a group that is new begins. Default: `earliest`, and `latest` without a group. */
  readonly start?: 'earliest' | 'latest' | { readonly after: number };
  /**
   * `auto` (default): the handler's return acknowledges and its throw rejects; a loop's next step acknowledges.
   * `manual`: by `ack()` and `nack()` of the message; a handler that throws rejects all the same.
   */
  readonly ack?: 'manual' | 'auto';
  /** How many promises of the handler may be open at a time, 1..65536. Default 1: one message after the other. */
  readonly concurrency?: number;
  /** Ends the consumption. */
  readonly signal?: AbortSignal;
}

/** What goes on the wire for a consumption, and what stays here. */
export interface ConsumeFields {
  readonly code: number;
  readonly group: string;
  readonly filter: string;
  readonly window: number;
  readonly start: payload.Start;
  readonly auto: boolean;
  readonly concurrency: number;
}

const MAX_WINDOW = 65_536;
const DEFAULT_WINDOW = 256;

/** @throws TrunklineError OPTION_INVALID, ABORTED */
export function consumeFields(code: number, options: ConsumeOptions): ConsumeFields {
  integer('code', code, 1, MAX_U32);
  if (typeof options !== 'object' || options === null) {
    throw new TrunklineError('OPTION_INVALID', 'options must be an object');
  }
  checkSignal(options.signal);
  const { window = DEFAULT_WINDOW, concurrency = 1, ack = 'auto' } = options;
  if (ack !== 'auto' && ack !== 'manual') {
    throw new TrunklineError('OPTION_INVALID', "ack must be 'auto' or 'manual'");
  }
  const group = text('group', options.group);
  return {
    code,
    group,
    filter: text('filter', options.filter).trim(),
    window: integer('window', window, 1, MAX_WINDOW),
    start: queueStart(options.start ?? (group === '' ? 'latest' : 'earliest')),
    auto: ack === 'auto',
    concurrency: integer('concurrency', concurrency, 1, MAX_WINDOW),
  };
}

function queueStart(start: NonNullable<ConsumeOptions['start']>): payload.Start {
  const { KEPT, LIVE, AFTER } = payload.StartFrom;
  if (start === 'earliest') return { from: KEPT, sequence: 0, epoch: nothing };
  if (start === 'latest') return { from: LIVE, sequence: 0, epoch: nothing };
  if (typeof start !== 'object' || start === null) {
    throw new TrunklineError('OPTION_INVALID', "start must be 'earliest', 'latest' or { after }");
  }
  return { from: AFTER, sequence: integer('start.after', start.after, 0, Number.MAX_SAFE_INTEGER), epoch: nothing };
}

export interface RequestOptions {
  readonly params?: unknown;
  /** How long to wait for the final response, ms, 1..2^31-1. Default 30,000. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** What goes on the wire for a subscription, but for its request id. */
export interface RequestFields extends payload.Asked {
  readonly code: number;
  readonly start: payload.Start;
}

const MAX_U32 = 0xffffffff;
const overflows: readonly unknown[] = ['dropOldest', 'latest', 'disconnect', 'block'];
const nothing = new Uint8Array(0);
const KEPT: payload.Start = Object.freeze({ from: payload.StartFrom.KEPT, sequence: 0, epoch: nothing });
const LIVE: payload.Start = Object.freeze({ from: payload.StartFrom.LIVE, sequence: 0, epoch: nothing });

/** Code 0 is the dispatcher itself. @throws TrunklineError OPTION_INVALID */
export function checkCode(code: unknown): number {
  return integer('code', code, 0, MAX_U32);
}

/** @throws TrunklineError OPTION_INVALID */
export function integer(name: string, value: unknown, least: number, most: number): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < least || value > most) {
    throw new TrunklineError('OPTION_INVALID', `${name} must be an integer ${least}..${most}, not ${String(value)}`);
  }
  return value;
}

/** @throws TrunklineError ABORTED when the signal is aborted already */
export function checkSignal(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw aborted(signal);
}

export function aborted(signal: AbortSignal): TrunklineError {
  return new TrunklineError('ABORTED', undefined, { cause: signal.reason });
}

/** @throws TrunklineError OPTION_INVALID, PARAMS_INVALID, ABORTED */
export function requestFields(code: number, options: SubscribeOptions): RequestFields {
  checkCode(code);
  if (typeof options !== 'object' || options === null) {
    throw new TrunklineError('OPTION_INVALID', 'options must be an object');
  }
  checkSignal(options.signal);
  const { overflow } = options;
  if (overflow !== undefined && !overflows.includes(overflow)) {
    throw new TrunklineError('OPTION_INVALID', `overflow must be one of ${overflows.join(', ')}`);
  }
  if (options.ordered !== undefined && typeof options.ordered !== 'boolean') {
    throw new TrunklineError('OPTION_INVALID', 'ordered must be a boolean');
  }
  const filter = text('filter', options.filter);
  return {
    code,
    params: packParams(options.params),
    filter: filter.trim() === '' ? '' : filter,
    returnHandler: text('return', options.return),
    group: text('group', options.group),
    rate: options.rate === undefined ? 0 : integer('rate', options.rate, 1, MAX_U32),
    overflow: overflow ?? '',
    start: startField(options.start),
  };
}

export function text(name: string, value: unknown): string {
  if (value === undefined) return '';
  if (typeof value !== 'string') throw new TrunklineError('OPTION_INVALID', `${name} must be a string`);
  return value;
}

function startField(start: StartOption | undefined): payload.Start {
  if (start === undefined || start === 'kept') return KEPT;
  if (start === 'live') return LIVE;
  if (typeof start !== 'object' || start === null) {
    throw new TrunklineError('OPTION_INVALID', "start must be 'kept', 'live' or { after, epoch }");
  }
  const { epoch = nothing } = start;
  if (!(epoch instanceof Uint8Array)) throw new TrunklineError('OPTION_INVALID', 'start.epoch must be bytes');
  return {
    from: payload.StartFrom.AFTER,
    sequence: integer('start.after', start.after, 0, Number.MAX_SAFE_INTEGER),
    epoch,
  };
}
