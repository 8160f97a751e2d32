import type { QueueDeclaration } from './queues/declaration.js';

/** What a stream keeps for late joiners (rule 9). */
export type Keep =
  | { mode: 'none' }
  | { mode: 'last' }
  | { mode: 'lastPerKey'; max: number }
  | { mode: 'ring'; size: number };

/** What happens to a subscriber's responses over the bound of its outbox (PROTOCOL.md §6). */
export type Overflow = 'dropOldest' | 'latest' | 'disconnect' | 'block';
export const overflows: readonly Overflow[] = ['dropOldest', 'latest', 'disconnect', 'block'];

/**
 * One entry of the forwarding table: a service code, or a range of them, and how its streams live. Times are
 * milliseconds. Plain data: two definitions are the same service exactly if they are deeply equal.
 */
export interface ServiceDefinition {
  /** First and last code of the range, equal for a single code. The narrowest range that holds a code wins. */
  readonly from: number;
  readonly to: number;
  readonly name: string;
  /** `dynamic`: whoever dials in and OFFERs the code. Otherwise addresses that the dispatcher dials, in order of preference. */
  readonly providers: 'dynamic' | readonly string[];
  /** Name of a send handler: `failover`, `roundRobin`, `hash`, `all` or one of `modules.sendHandlers`. */
  readonly sendHandler: string;
  /** Names of return handlers a subscriber may ask for; the first is the default. */
  readonly returnHandlers: readonly string[];
  /** Overflow policies a subscriber may ask for; the first is the default. */
  readonly overflow: readonly Overflow[];
  /** First wait for an answer before a REQUEST is sent again (rule 3) and the most the wait grows to. */
  readonly resendAfter: number;
  readonly resendCap: number;
  /** Silence before a live stream is probed, 0: never; and unanswered probes until it is stale (rule 5). */
  readonly probeAfter: number;
  readonly probeMisses: number;
  /** Unanswered requests per provider (rule 4). */
  readonly requestWindow: number;
  /** How long the upstream subscription outlives the last subscriber (rule 8). */
  readonly linger: number;
  readonly keep: Keep;
  /** Messages a second per key of the return handler `latest` where the subscriber names no rate. */
  readonly latestRate: number;
  readonly limits: {
    readonly maxStreams: number;
    readonly maxSubscribers: number;
    /** Bytes of params in a request. */
    readonly maxParams: number;
    /** Bytes that one stream keeps for late joiners. */
    readonly maxKept: number;
  };
  /** Name of one of `modules.onProbe`, or empty. */
  readonly onProbe: string;
  /** Where the responses are written to; absent: nowhere. */
  readonly record?: RecordDefinition;
}

export interface RecordDefinition {
  /** Service code of a queue. */
  readonly queue: number;
  /** Requests that are kept upstream whether or not anybody subscribes. */
  readonly params: readonly unknown[];
}

/** A module named in the configuration, by the name its users use. */
export interface ModuleReference {
  readonly name: string;
  /** Path, resolved against the configuration file. */
  readonly path: string;
  readonly options: unknown;
}

/** The dispatcher's own keys and those that it lets in, in Z85. */
export interface CurveDefinition {
  readonly publicKey: string;
  readonly secretKey: string;
  /** Undefined: whoever knows the public key. */
  readonly allowedKeys: readonly string[] | undefined;
}

export interface ListenDefinition {
  readonly address: string;
}

/** A whole configuration after defaults were filled in and every rule was checked. */
export interface Configuration {
  readonly listen: readonly ListenDefinition[];
  /** Live services. */
  readonly services: readonly ServiceDefinition[];
  readonly queues: readonly QueueDeclaration[];
  /** Folder of the store, where queues on disk are; undefined: there can be none. */
  readonly dataDirectory: string | undefined;
  readonly modules: {
    readonly sendHandlers: readonly ModuleReference[];
    readonly returnHandlers: readonly ModuleReference[];
    readonly onProbe: readonly ModuleReference[];
    /** Handlers of application message types; `type` is 128..255. */
    readonly messageTypes: readonly (ModuleReference & { readonly type: number })[];
  };
  readonly session: {
    readonly heartbeat: number;
    /** Silence after which a session is lost, as a multiple of the peer's heartbeat. */
    readonly livenessFactor: number;
    readonly maxMessageBytes: number;
    /** Credit the dispatcher grants each peer, in bytes. */
    readonly receiveWindow: number;
    /** Bound of the outbox per session, in bytes, beyond the credit of its peer. */
    readonly outboxBytes: number;
    readonly maxSessions: number;
    readonly maxSubscriptions: number;
  };
  /** Tokens a HELLO may carry; empty: none is asked for. */
  readonly tokens: readonly string[];
  /** What static providers are shown in HELLO; empty: nothing. */
  readonly token: string;
  /** Undefined: nothing is encrypted. */
  readonly curve: CurveDefinition | undefined;
  /** Public keys that static providers must have, by address; one without is dialled in plain text. */
  readonly serverKeys: Readonly<Record<string, string>>;
  /** Longest a stop may take. */
  readonly drain: number;
  readonly log: { readonly level: 'debug' | 'info' | 'warn' | 'error' };
}
