import { paramsKey, type SessionContext, Timer, TrunklineError } from '@trunkline/proto';
import type { Message } from './message.js';
import { aborted, checkCode, checkSignal, integer, type RequestOptions, type SubscribeOptions } from './options.js';
import type { Subscription } from './subscription.js';

const DEFAULT_TIMEOUT = 30_000;
const MAX_TIMEOUT = 2 ** 31 - 1;

interface Waiter {
  resolve(message: Message): void;
  reject(error: TrunklineError): void;
}

interface Call {
  readonly subscription: Subscription;
  readonly waiting: Set<Waiter>;
}

type Subscribe = (code: number, options: SubscribeOptions, handler: (message: Message) => void) => Subscription;

/**
 * `client.request`: subscriptions that end with their first final response (rule 10). Identical ones that are under
 * way at the same time are one.
 */
export class Calls {
  private readonly calls = new Map<string, Call>();

  constructor(
    private readonly context: SessionContext,
    private readonly subscribe: Subscribe,
  ) {}

  get size(): number {
    return this.calls.size;
  }

  /** @param params encoded */
  async request(code: number, params: Uint8Array, options: RequestOptions): Promise<Message> {
    checkCode(code);
    const { timeoutMs = DEFAULT_TIMEOUT, signal } = options;
    const timeout = integer('timeoutMs', timeoutMs, 1, MAX_TIMEOUT);
    checkSignal(signal);
    const key = identity(code, params);
    const call = this.calls.get(key) ?? this.begin(key, code, params);
    return this.wait(key, call, timeout, signal);
  }

  private begin(key: string, code: number, params: Uint8Array): Call {
    const waiting = new Set<Waiter>();
    const finish = (tell: (waiter: Waiter) => void) => {
      if (this.calls.get(key)?.waiting === waiting) this.calls.delete(key);
      for (const waiter of [...waiting]) tell(waiter);
    };
    const subscription = this.subscribe(code, { params, start: 'live' }, (message) => {
      if (message.final) finish((waiter) => waiter.resolve(message));
    });
    const call: Call = { subscription, waiting };
    this.calls.set(key, call);
    // a refusal is told by the end, too
    subscription.on('error', () => {});
    subscription.on('end', ({ code: reason, message, exit, retryable }) => {
      const error = new TrunklineError(reason, message, { exit, retryable });
      finish((waiter) => waiter.reject(error));
    });
    return call;
  }

  private wait(key: string, call: Call, timeout: number, signal: AbortSignal | undefined): Promise<Message> {
    return new Promise((resolve, reject) => {
      const giveUp = (error: TrunklineError) => {
        waiter.reject(error);
        if (call.waiting.size > 0) return;
        if (this.calls.get(key) === call) this.calls.delete(key);
        call.subscription[Symbol.asyncDispose]();
      };
      const timer = new Timer({
        onTimer: () => giveUp(new TrunklineError('TIMEOUT', `no final response within ${timeout} ms`, again)),
      });
      const abort = () => giveUp(aborted(signal!));
      const done = () => {
        call.waiting.delete(waiter);
        this.context.timers.stop(timer);
        signal?.removeEventListener('abort', abort);
      };
      const waiter: Waiter = {
        resolve: (message) => {
          done();
          resolve(message);
        },
        reject: (error) => {
          done();
          reject(error);
        },
      };
      call.waiting.add(waiter);
      this.context.timers.start(timer, timeout);
      signal?.addEventListener('abort', abort);
    });
  }
}

const again = { retryable: true };

/** Rule 1: the code and the exact bytes. */
function identity(code: number, params: Uint8Array): string {
  return `${code}:${paramsKey(params)}`;
}
