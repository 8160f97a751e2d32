import { Emitter, type EventMap, type Log, TrunklineError } from '@trunkline/proto';

export interface ErrorEvents {
  error: readonly [error: TrunklineError];
}

/**
 * What has listeners. No listener can disturb the stream: one that throws or rejects becomes an `error` event with
 * HANDLER_FAILED, and an `error` event that nobody listens to goes to the log (F25, F26).
 */
export abstract class Events<Map extends EventMap<Map> & ErrorEvents> {
  protected readonly log: Log;
  /** Made with the first listener: most subscriptions have a handler and never one of these. */
  private emitter: Emitter<Map> | undefined;
  /** Listeners of `once` that were not called yet; mostly there are none. */
  private onces: { readonly name: keyof Map; readonly listener: unknown; readonly off: () => void }[] | undefined;

  constructor(log: Log) {
    this.log = log;
  }

  /** Returns the way to take the listener away again. */
  on<Name extends keyof Map>(name: Name, listener: (...args: Map[Name]) => unknown): () => void {
    this.emitter ??= new Emitter<Map>((error, failed) => this.failed(error, String(failed)));
    return this.emitter.on(name, listener);
  }

  once<Name extends keyof Map>(name: Name, listener: (...args: Map[Name]) => unknown): () => void {
    const stop = this.on(name, (...args: Map[Name]) => {
      off();
      return listener(...args);
    });
    const off = () => {
      stop();
      this.onces = this.onces?.filter((entry) => entry.off !== off);
    };
    this.onces = [...(this.onces ?? []), { name, listener, off }];
    return off;
  }

  /** Takes away a listener of `on` or `once`. */
  off<Name extends keyof Map>(name: Name, listener: (...args: Map[Name]) => unknown): void {
    const waiting = this.onces?.find((entry) => entry.name === name && entry.listener === listener);
    if (waiting !== undefined) waiting.off();
    else this.emitter?.off(name, listener);
  }

  protected has(name: keyof Map): boolean {
    return this.emitter?.has(name) ?? false;
  }

  /** Returns whether anybody listened. */
  protected emit<Name extends keyof Map>(name: Name, ...args: Map[Name]): boolean {
    return this.emitter?.emit(name, ...args) ?? false;
  }

  /** As `Emitter.settle`. */
  protected settle<Name extends keyof Map>(name: Name, ...args: Map[Name]): Promise<unknown> | undefined {
    return this.emitter?.settle(name, ...args);
  }

  protected failed(error: unknown, what: string): void {
    const failure = handlerFailure(error, what);
    if (what === 'error') this.log.error({ error: failure.message }, 'listener failed');
    else this.report(failure);
  }

  protected report(error: TrunklineError): void {
    const emit = this.emit as (name: 'error', error: TrunklineError) => boolean;
    if (!emit.call(this, 'error', error)) {
      this.log.error({ code: error.code, error: error.message }, 'nobody listens to an error');
    }
  }
}

/** A message that cannot be decoded says so itself (F50); anything else is the handler's own failure. */
function handlerFailure(error: unknown, what: string): TrunklineError {
  const unreadable =
    error instanceof TrunklineError && (error.code === 'META_INVALID' || error.code === 'BODY_INVALID');
  if (what === 'message' && unreadable) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new TrunklineError('HANDLER_FAILED', `${what} handler failed: ${reason}`, { cause: error });
}
