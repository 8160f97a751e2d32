import {
  decodeParams,
  type ErrorCode,
  Flag,
  isThenable,
  keyBytes,
  type Meta,
  payload,
  TrunklineError,
  Type,
} from '@trunkline/proto';
import type { ProviderSession } from './provider-session.js';
import type { Registration } from './registrations.js';

/**
 * Called once for each distinct request (rule 1). What it returns, or resolves to, is
 * - nothing: it goes on by itself;
 * - a function: called once when the subscription is over, for whatever reason;
 * - anything else: the one and final response. (A boolean does not count after `respond` or `end` was called, so that
 *   `(subscription) => subscription.respond(…)` is no trap.)
 *
 * A handler that throws or rejects refuses the request, or ends the stream if it had accepted it: with the code and
 * message of the TrunklineError that it threw, otherwise with HANDLER_FAILED.
 */
export type Handler = (subscription: Subscription) => unknown;

export interface RespondOptions extends Partial<Meta> {
  /** The stream completes with this response (rule 10). */
  readonly final?: boolean;
  /** The body, a string or bytes, is JSON already; it is sent as it is and marked so. */
  readonly json?: boolean;
}

export interface EndOptions {
  /** Default: COMPLETED, or EXITED when there is an `exit`. */
  readonly code?: ErrorCode;
  readonly message?: string;
  /** Exit code of the command behind the stream. */
  readonly exit?: number;
}

/** One distinct request that a dispatcher made of this provider, however many subscribers share it. */
export interface Subscription {
  readonly code: number;
  /** The params as bytes: what the subscriber gave, or the canonical JSON of it. */
  readonly paramsBytes: Uint8Array;
  /** The params read as JSON; undefined when there are none. @throws TrunklineError PARAMS_INVALID: they are not JSON */
  readonly params: unknown;
  /** Of the upstream subscription: grows when the dispatcher asks anew. */
  readonly generation: number;
  /** Whether nothing more can be sent. */
  readonly over: boolean;
  /** Aborted when the subscription is over; its reason is a TrunklineError. */
  readonly signal: AbortSignal;

  /**
   * Sends a response. A body is nothing, a Uint8Array (as it is), a string (UTF-8) or anything else (JSON).
   * Returns false when it was NOT taken: the subscription is over, or the dispatcher has not consumed what was sent
   * before; then wait for `drained`, or leave this response out.
   * @throws TrunklineError BODY_INVALID, META_INVALID, MESSAGE_TOO_LARGE; nothing is sent then
   */
  respond(body?: unknown, options?: RespondOptions): boolean;
  /** Resolves when there is room for a response. Rejects with the reason when the subscription is over before. */
  drained(): Promise<void>;
  /** Completes the stream for everyone (rule 10). Returns false when it was over already. @throws OPTION_INVALID */
  end(options?: EndOptions): boolean;
  /**
   * Refuses the request, in place of a response. Returns false when the subscription is over already.
   * @throws TrunklineError STATE_INVALID: it was accepted before
   */
  refuse(code?: ErrorCode, message?: string, retryable?: boolean): boolean;
  /**
   * Asks whether the dispatcher still knows this subscription, and marks it alive there (rule 5). Rejects with the
   * reason when it does not: the subscription is over then.
   */
  probe(): Promise<void>;
}

type State = 'starting' | 'accepted' | 'over';
const moves: Record<State, readonly State[]> = {
  starting: ['accepted', 'over'],
  accepted: ['over'],
  over: [],
};

interface Deferred {
  readonly promise: Promise<void>;
  resolve(): void;
  reject(error: TrunklineError): void;
}

const FINAL: RespondOptions = Object.freeze({ final: true });
const NO_OPTIONS: RespondOptions = Object.freeze({});

/** @internal The provider's side of one stream in one session. */
export class ProviderSubscription implements Subscription {
  private state: State = 'starting';
  private reason: TrunklineError | undefined;
  private cleanup: (() => unknown) | undefined;
  private controller: AbortController | undefined;
  private room: Deferred | undefined;
  private probing: Deferred | undefined;

  constructor(
    private readonly peer: ProviderSession,
    readonly registration: Registration,
    readonly code: number,
    readonly line: number,
    readonly generation: number,
    /** One character a byte: most handlers look at the params once or never, and text takes a tenth of the memory. */
    private readonly key: string,
  ) {}

  get paramsBytes(): Uint8Array {
    return keyBytes(this.key);
  }

  get params(): unknown {
    return decodeParams(this.paramsBytes);
  }

  get over(): boolean {
    return this.state === 'over';
  }

  get accepted(): boolean {
    return this.state === 'accepted';
  }

  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      if (this.state === 'over') this.controller.abort(this.reason);
    }
    return this.controller.signal;
  }

  // ---- the life of it ----

  private move(next: State): void {
    if (!moves[this.state].includes(next)) {
      throw new TrunklineError('STATE_INVALID', `subscription: ${this.state} to ${next}`);
    }
    this.state = next;
  }

  start(): void {
    let result: unknown;
    try {
      result = this.registration.handler(this);
    } catch (error) {
      this.failed(error);
      return;
    }
    if (isThenable(result)) {
      result.then(
        (value) => this.returned(value),
        (error) => this.failed(error),
      );
    } else this.returned(result);
  }

  private returned(value: unknown): void {
    if (typeof value === 'function') {
      this.cleanup = value as () => unknown;
      if (this.state === 'over') this.clean();
      else this.accept();
    } else if (value === undefined || this.state === 'over' || (typeof value === 'boolean' && this.accepted)) {
      this.accept();
    } else this.answer(value);
  }

  /** Sends the final response as soon as there is room for it. */
  private answer(value: unknown): void {
    try {
      if (this.respond(value, FINAL) || this.over) return;
    } catch (error) {
      this.failed(error);
      return;
    }
    this.drained().then(
      () => this.answer(value),
      () => {},
    );
  }

  private accept(): void {
    if (this.state !== 'starting') return;
    this.move('accepted');
    this.peer.send(Type.ACCEPTED, this);
  }

  private failed(error: unknown): void {
    // what a handler says about the end that it was told of is no news
    if (this.state === 'over' && tellsOf(this.reason, error)) return;
    if (error instanceof TrunklineError) {
      if (this.state !== 'starting') this.peer.report(error);
      this.giveUp(error);
      return;
    }
    const said = error instanceof Error ? error.message : String(error);
    this.peer.report(new TrunklineError('HANDLER_FAILED', `handler of code ${this.code}: ${said}`, { cause: error }));
    this.giveUp(new TrunklineError('HANDLER_FAILED'));
  }

  private giveUp(error: TrunklineError): void {
    const { code, message, retryable } = error;
    if (this.state === 'starting') this.refuse(code, message, retryable);
    else this.end(error.exit === undefined ? { code, message } : { code, message, exit: error.exit });
  }

  /** Ends it on this side only. */
  finish(reason: TrunklineError): void {
    if (this.state === 'over') return;
    this.move('over');
    this.reason = reason;
    this.peer.forget(this);
    this.room?.reject(reason);
    this.probing?.reject(reason);
    this.controller?.abort(reason);
    this.clean();
  }

  private clean(): void {
    const { cleanup } = this;
    if (cleanup === undefined) return;
    this.cleanup = undefined;
    const failed = (cause: unknown) => {
      if (tellsOf(this.reason, cause)) return;
      this.peer.report(new TrunklineError('HANDLER_FAILED', `cleanup of code ${this.code} failed`, { cause }));
    };
    try {
      const result = cleanup();
      if (isThenable(result)) result.then(undefined, failed);
    } catch (error) {
      failed(error);
    }
  }

  // ---- what the handler does ----

  respond(body?: unknown, options: RespondOptions = NO_OPTIONS): boolean {
    if (this.state === 'over') return false;
    const final = options.final === true;
    if (this.state === 'starting') {
      // a body that cannot be sent must still be able to refuse
      this.peer.check(body, options);
      this.accept();
    }
    const flags = (final ? Flag.FINAL : 0) | (options.json === true ? Flag.JSON : 0);
    if (!this.peer.write(Type.RESPONSE, this, flags, body, options)) return false;
    if (final) {
      this.peer.remember(this);
      this.finish(new TrunklineError('COMPLETED'));
    }
    return true;
  }

  drained(): Promise<void> {
    if (this.state === 'over') return Promise.reject(this.reason);
    if (this.peer.hasRoom()) return Promise.resolve();
    if (this.room === undefined) {
      this.room = deferred();
      this.peer.waiting.add(this);
    }
    return this.room.promise;
  }

  /** There is credit again. */
  drain(): void {
    const { room } = this;
    this.room = undefined;
    room?.resolve();
  }

  end(options: EndOptions = {}): boolean {
    const { exit } = options;
    if (exit !== undefined && (exit | 0) !== exit) {
      throw new TrunklineError('OPTION_INVALID', `exit must be a 32-bit integer, not ${exit}`);
    }
    if (this.state === 'over') return false;
    this.accept();
    const code = options.code ?? (exit === undefined ? 'COMPLETED' : 'EXITED');
    const reason = new TrunklineError(code, options.message, { exit });
    this.peer.send(Type.END, this, payload.end.encode({ code, message: options.message ?? '', exit }));
    this.peer.remember(this);
    this.finish(reason);
    return true;
  }

  refuse(code: ErrorCode = 'REFUSED', message?: string, retryable = false): boolean {
    if (this.state === 'over') return false;
    if (this.state === 'accepted') throw new TrunklineError('STATE_INVALID', 'the request was accepted before');
    const reason = new TrunklineError(code, message, { retryable });
    this.peer.send(Type.REFUSED, this, payload.refused.encode({ code, message: reason.message, retryable }));
    this.finish(reason);
    return true;
  }

  probe(): Promise<void> {
    if (this.state === 'over') return Promise.reject(this.reason);
    if (this.probing === undefined) {
      this.probing = deferred();
      this.peer.send(Type.PROBE, this, payload.upstream.encode({ params: keyBytes(this.key) }));
    }
    return this.probing.promise;
  }

  probed(): void {
    this.probing?.resolve();
    this.probing = undefined;
  }
}

function deferred(): Deferred {
  let resolve: () => void = () => {};
  let reject: (error: TrunklineError) => void = () => {};
  const promise = new Promise<void>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  // nobody may be listening any more when it rejects (F26)
  promise.catch(() => {});
  return { promise, resolve, reject };
}

/** Whether the error is the reason itself, or what an aborted wait makes of it. */
function tellsOf(reason: TrunklineError | undefined, error: unknown): boolean {
  if (error === reason) return true;
  return error instanceof Error && (error.cause === reason || error.name === 'AbortError');
}
