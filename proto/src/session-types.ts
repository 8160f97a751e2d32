import type { TrunklineError } from './errors.js';
import type { FaultListener } from './fault.js';
import type { Flusher } from './flusher.js';
import type { HeaderFault } from './header.js';
import type { Clock, Random } from './ports.js';
import type { Session } from './session.js';
import type { Timers } from './timers.js';
import type { Turns } from './turns.js';

/** Who a process is. */
export interface Identity {
  /** Chosen once per process at random: another one behind an old address means a restart (rule 6). */
  readonly instance: Uint8Array;
  /** For people only. */
  readonly name: string;
}

export interface SessionLimits {
  /** A peer is sent something at least this often, ms. */
  readonly heartbeat: number;
  /** A peer not heard for this many of its own heartbeats is lost. */
  readonly livenessFactor: number;
  /** Largest message this end takes, bytes. */
  readonly maxMessage: number;
  /** Data bytes a peer may have sent that are not consumed yet. */
  readonly receiveWindow: number;
  /** First wait for a WELCOME before HELLO is sent again, ms; doubles up to `helloCap`. */
  readonly helloAfter: number;
  readonly helloCap: number;
}

export const defaultSessionLimits: SessionLimits = {
  heartbeat: 2000,
  livenessFactor: 3,
  maxMessage: 64 * 1024 * 1024,
  receiveWindow: 4 * 1024 * 1024,
  helloAfter: 250,
  helloCap: 5000,
};

/** What a session is given; the same for both ends. */
export interface SessionContext {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly flusher: Flusher;
  /** Of the process: who goes on in a later turn. */
  readonly turns: Turns;
  readonly identity: Identity;
  readonly limits: SessionLimits;
  readonly onFault?: FaultListener;
  /** Memory for messages: plain Uint8Arrays whose bytes may be anything, all of them are written. Default: zeroed. */
  readonly allocate?: (bytes: number) => Uint8Array;
}

/** Who hears of a session. Calls are synchronous and must not throw. */
export interface SessionEvents {
  onOpen(session: Session): void;
  /** A message that is neither the session's own nor data. `at` is where it begins. */
  onControl(session: Session, type: number, batch: Uint8Array, at: number): void;
  /**
   * `count` data messages of one type, line and generation, back to back. More than one only without the flags FINAL,
   * SNAPSHOT and SNAPSHOT_END. The receiver calls `consume` for their bytes, now or later.
   */
  onData(session: Session, batch: Uint8Array, start: number, end: number, count: number): void;
  /** Credit has come after `credit` had been used up. */
  onCredit(session: Session): void;
  /** Once, whatever the reason; nothing is called after it. */
  onClosed(session: Session, reason: TrunklineError): void;
}

/** Counted faults, by reason, for metrics. */
export type FaultCounters = Partial<Record<HeaderFault | 'payload' | 'unexpected', number>>;

export type SessionState = 'connecting' | 'open' | 'closed';
