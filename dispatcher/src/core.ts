import type { Log, Session, SessionContext } from '@trunkline/proto';
import type { Consumer } from './consumer.js';
import { FilterCompiler } from './filters/index.js';
import { LineTable } from './lines.js';
import type { Stream } from './stream.js';

/** Between two lines of the log about failures of one kind of handler, ms. */
const HANDLER_LOG_PAUSE = 1000;
/** Bytes. */
const LEAST_UNZEROED = 4096;

/** Totals since the start, for the admin views. */
export class Counters {
  requests = 0;
  refusals = 0;
  accepted = 0;
  resends = 0;
  probes = 0;
  /** Responses of an upstream subscription that is not the current one. */
  outdated = 0;
  /** Responses, or other messages, for a line nobody has. */
  unknownLine = 0;
  filterErrors = 0;
  handlerErrors = 0;
  /** Responses that were to be recorded and that the queue did not take. */
  unrecorded = 0;
  /** Faults of the dispatcher itself: each ended one session, or did nothing. */
  faults = 0;
  /** Responses told in a GAP instead of delivered. */
  gaps = 0;
  /** Responses replaced by newer ones of the same key. */
  conflated = 0;
}

/** What every part of the core shares: the injected world and the tables that span all services. */
export class Core {
  readonly counters = new Counters();
  readonly lines = new LineTable<Stream | Consumer>();
  readonly filters: FilterCompiler;
  /** Nothing is asked of providers any more (F100). */
  stopping = false;
  /** Takes the responses of a service that is recorded. */
  record: (stream: Stream, buffer: Uint8Array, start: number, end: number) => void = () => {};
  /** An epoch: begins with what marks the history of this process. */
  private readonly scratch = new Uint8Array(12);
  private generations = 0;
  /** When a failure of each kind of handler was last logged. */
  private readonly handlerLogged = new Map<string, number>();

  constructor(
    readonly context: SessionContext,
    readonly log: Log,
    /** Bound of the outbox of a session, bytes. */
    readonly outboxBytes: number,
  ) {
    this.scratch.set(context.random.bytes(8));
    this.filters = new FilterCompiler({ onEvaluationError: () => this.counters.filterErrors++ });
  }

  /** Memory whose bytes may be anything. */
  allocate(bytes: number): Uint8Array {
    // for a few bytes the call costs more than zeroing them
    if (bytes < LEAST_UNZEROED) return new Uint8Array(bytes);
    return this.context.allocate?.(bytes) ?? new Uint8Array(bytes);
  }

  now(): number {
    return this.context.clock.now();
  }

  /** Generations grow over all streams, so a stream that was forgotten and comes back is never mistaken for itself. */
  nextGeneration(): number {
    this.generations = this.generations === 0xffffffff ? 1 : this.generations + 1;
    return this.generations;
  }

  /**
   * Names one history of one stream: this process, and which of the streams it had under that name. Valid until the
   * next call.
   */
  epoch(birth: number): Uint8Array {
    const { scratch } = this;
    for (let index = 0; index < 4; index++) scratch[8 + index] = birth >>> (8 * index);
    return scratch;
  }

  /**
   * Ends a session that fell behind, once the lists that are being walked are done with: a member that goes while its
   * lane is delivered to would make another one be skipped.
   */
  disconnect(session: Session): void {
    this.context.flusher.add({ flush: () => session.close('SLOW_CONSUMER', '', true) });
  }

  /**
   * Runs code of a module from the configuration; what it throws, or a promise that it returns rejects with, is logged
   * and counted and goes no further.
   */
  guard<T>(what: string, run: () => T, fallback: T): T {
    try {
      const result = run();
      if (result instanceof Promise) result.catch((error) => this.handlerFailed(what, error));
      return result;
    } catch (error) {
      this.handlerFailed(what, error);
      return fallback;
    }
  }

  /** A handler may fail with every message: each is counted, and one in `HANDLER_LOG_PAUSE` is logged. */
  private handlerFailed(what: string, error: unknown): void {
    this.counters.handlerErrors++;
    const now = this.now();
    if (now - (this.handlerLogged.get(what) ?? Number.NEGATIVE_INFINITY) < HANDLER_LOG_PAUSE) return;
    this.handlerLogged.set(what, now);
    this.log.error(
      { what, error: String(error), failures: this.counters.handlerErrors },
      'a configured handler failed',
    );
  }
}
