import type { Dispatcher } from '@trunkline/dispatcher';
import type { EndEvent, GapEvent, StatusEvent } from '@trunkline/subscriber/core';
import type { Peer } from '../../../../dispatcher/dist/peer.js';
import type { Ending, Stream } from '../../../../dispatcher/dist/stream.js';
import type { Handle, HandleListener, SeenMessage, Segment } from '../handle.js';
import type { Entry, Ledgers, StreamLedger } from '../ledger.js';
import type { SimMember } from '../member.js';
import type { Wire } from '../network.js';
import type { Run, RunListener } from '../provider-part.js';
import type { Body, Scenario } from '../scenario.js';
import { type SimProcess, Violation, type World } from '../world.js';

/** What checkers may look at. */
export interface Watched {
  readonly world: World;
  readonly scenario: Scenario;
  readonly ledgers: Ledgers;
  readonly handles: ReadonlySet<Handle>;
  readonly runs: ReadonlySet<Run>;
  readonly members: readonly SimMember[];
  readonly dispatcher: Dispatcher | undefined;
  readonly dispatcherProcess: SimProcess | undefined;
  /** When the dispatcher's process last went on after it was stopped: its timers are late until then. */
  readonly awakeSince: number;
  /** Providers say nothing any more, so that what is under way comes to its end. */
  readonly silent: boolean;
  /** Times a reload changed the table. */
  readonly reloads: number;
}

/** One message on a wire between the dispatcher and another process. */
export interface WireMessage {
  readonly type: number;
  readonly code: number;
  readonly line: number;
  readonly generation: number;
  readonly batch: Uint8Array;
  readonly at: number;
}

/** Watches over some of the rules of DESIGN §5. Its methods are called as things happen; what is wrong is thrown. */
export abstract class Checker implements HandleListener, RunListener {
  abstract readonly name: string;
  abstract readonly rules: string;

  constructor(protected readonly sim: Watched) {}

  /** The dispatcher sent it. */
  sent?(wire: Wire, message: WireMessage): void;
  /** It is about to reach the dispatcher. */
  received?(wire: Wire, message: WireMessage): void;
  accepted?(handle: Handle, segment: Segment): void;
  message?(handle: Handle, segment: Segment, seen: SeenMessage): void;
  status?(handle: Handle, status: StatusEvent): void;
  gap?(handle: Handle, gap: GapEvent): void;
  end?(handle: Handle, end: EndEvent): void;
  runStarted?(run: Run): void;
  runOver?(run: Run): void;
  forgotten?(runs: Iterable<Run>): void;
  callSettled?(code: number, text: string, failure: string | undefined, body: Body | undefined): void;
  /** The dispatcher stamped a response. */
  arrived?(ledger: StreamLedger, entry: Entry): void;
  /** The dispatcher is about to end a stream for everyone. */
  streamEnded?(ledger: StreamLedger, ending: Ending): void;
  /** A batch of a session was lost or doubled. */
  damaged?(wire: Wire, toAcceptor: boolean): void;
  /** After each event in the dispatcher's process. */
  dispatcherStep?(dispatcher: Dispatcher, streams: readonly Stream[]): void;
  /** After some of them: for what stays wrong once it is, or costs too much to look at each time. */
  dispatcherLook?(dispatcher: Dispatcher, streams: readonly Stream[]): void;
  /** A dispatcher with an empty memory has begun. */
  dispatcherStarted?(): void;
  /** Faults are over and everything is as it should be. */
  converged?(): void;
  /** Faults are over, everything has converged and nothing is under way. */
  quiet?(dispatcher: Dispatcher): void;
  /** All providers were away for long. */
  dark?(): void;
  /** All subscribers have left. */
  empty?(dispatcher: Dispatcher): void;

  protected broken(what: string): never {
    throw new Violation(this.name, this.rules, what);
  }

  protected check(holds: boolean, what: () => string): void {
    if (!holds) this.broken(what());
  }
}

/** The connection under a session's link. */
export function wireOf(link: unknown): Wire | undefined {
  return (link as { wire: Wire | undefined }).wire;
}

export function peersOf(dispatcher: Dispatcher): Peer[] {
  return [...dispatcher.peers.values()];
}
