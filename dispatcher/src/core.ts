import type { Log, Session, SessionContext } from '@trunkline/proto';
import { FilterCompiler } from './filters/index.js';
import { LineTable } from './lines.js';
import type { Stream } from './stream.js';

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
  /** Responses told in a GAP instead of delivered. */
  gaps = 0;
  /** Responses replaced by newer ones of the same key. */
  conflated = 0;
}

/** What every part of the core shares: the injected world and the tables that span all services. */
export class Core {
  readonly counters = new Counters();
  readonly lines = new LineTable<Stream>();
  readonly filters: FilterCompiler;
  /** Nothing is asked of providers any more (F100). */
  stopping = false;
  /** Marks the history of this process: part of every epoch. */
  private readonly life: Uint8Array;
  private generations = 0;

  constructor(
    readonly context: SessionContext,
    readonly log: Log,
    /** Bound of the outbox of a session, bytes. */
    readonly outboxBytes: number,
  ) {
    this.life = context.random.bytes(8);
    this.filters = new FilterCompiler({ onEvaluationError: () => this.counters.filterErrors++ });
  }

  now(): number {
    return this.context.clock.now();
  }

  /** Generations grow over all streams, so a stream that was forgotten and comes back is never mistaken for itself. */
  nextGeneration(): number {
    this.generations = this.generations === 0xffffffff ? 1 : this.generations + 1;
    return this.generations;
  }

  /** Names one history of one stream: this process, and which of the streams it had under that name. */
  epoch(birth: number): Uint8Array {
    const epoch = new Uint8Array(12);
    epoch.set(this.life);
    for (let index = 0; index < 4; index++) epoch[8 + index] = birth >>> (8 * index);
    return epoch;
  }

  /**
   * Ends a session that fell behind, once the lists that are being walked are done with: a member that goes while its
   * lane is delivered to would make another one be skipped.
   */
  disconnect(session: Session): void {
    this.context.flusher.add({ flush: () => session.close('SLOW_CONSUMER', '', true) });
  }

  /** Runs code of a module from the configuration; what it throws is logged and counted and goes no further. */
  guard<T>(what: string, run: () => T, fallback: T): T {
    try {
      return run();
    } catch (error) {
      this.counters.handlerErrors++;
      this.log.error({ what, error: String(error) }, 'a configured handler failed');
      return fallback;
    }
  }
}
