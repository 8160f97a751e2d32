/**
 * What the core needs from the world outside. The daemon and the SDKs give real ones, the simulator simulated ones;
 * the core itself reads no clock, opens no socket and draws no random number.
 */

/** Monotonic time in milliseconds; never goes back and knows nothing of the date. */
export interface Clock {
  now(): number;
}

/** Source of random numbers: jitter, instance ids, epochs. */
export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
  bytes(length: number): Uint8Array;
}

/**
 * One peer at the other end of a transport. A link keeps the order of its batches. It may lose the batches under way
 * when its connection breaks, and only then.
 */
export interface Link {
  /** For logs: the address, and who at that address. */
  readonly label: string;
  /**
   * Hands one batch to the transport, without waiting. The bytes belong to the link from now on: they are never
   * written again. A link that is down drops them.
   */
  send(batch: Uint8Array): void;
  /** Forgets the peer. No event comes after it. */
  close(): void;
}

/** The reason of `onDown` when the peer is there and will not have us: waiting does not mend that. */
export const HANDSHAKE_REFUSED = 'handshake refused';

/** Who hears of a link. All calls are synchronous; none may throw. */
export interface LinkEvents {
  /** The batch is a plain Uint8Array, of no class of its own whose `slice` may be a view. */
  onBatch(link: Link, batch: Uint8Array): void;
  /** A dialled link has (again) a connection. Accepted links begin with their first batch instead. */
  onUp?(link: Link): void;
  /** A dialled link lost its connection (the transport dials again by itself); an accepted link is gone for good. */
  onDown?(link: Link, reason: string): void;
  /** Some accepted peer's connection closed and the transport cannot tell whose: whoever is sent to now finds out. */
  onSuspect?(): void;
  /** The end of one bounded step of receiving: the time to flush what it caused. */
  onStepEnd?(): void;
}

export interface Listener {
  /** Where it listens, with the port the system chose in place of 0 or `*`. */
  readonly address: string;
  close(): Promise<void>;
}

/** Moves batches between addresses and knows nothing else. */
export interface Transport {
  /** Totals by name, for operators. */
  readonly counters?: object;
  /** @throws TrunklineError ADDRESS_INVALID, ADDRESS_IN_USE */
  listen(address: string, events: LinkEvents): Promise<Listener>;
  /** Never fails for a peer that is not there: the link comes up when it is. @throws TrunklineError ADDRESS_INVALID */
  dial(address: string, events: LinkEvents): Link;
}

/** What has happened, for people: one line per change of state, never one per message. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

const ignore = () => {};
export const silentLog: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore };
