/**
 * What handlers of both kinds, `onProbe` modules and application message types implement. The built-in ones use the
 * same interfaces and nothing more; modules named in the configuration export a factory of one as their default.
 */

/** A distinct request, as a send handler sees it. */
export interface RequestView {
  readonly code: number;
  /** The params bytes, one character (U+0000..U+00FF) per byte. */
  readonly params: string;
}

/** A provider that is up and serves the code. */
export interface ProviderView {
  /** Address of a static provider, or the name a dynamic one gave itself. */
  readonly label: string;
  /** Stable for a static provider over restarts, unique for each session of a dynamic one. */
  readonly id: string;
  /** Streams it serves now. */
  readonly load: number;
}

/** Chooses which provider(s) a request goes to. */
export interface SendHandler {
  /** `up` is never empty, static providers in the order of the configuration, dynamic ones in that of their offers. */
  choose(request: RequestView, up: readonly ProviderView[]): readonly ProviderView[];
  /** Whether `choose` is asked again for streams that are served already when a provider comes up. */
  readonly joins?: boolean;
}

/** A subscriber in a lane. */
export interface LaneMember {
  /** Hands over messages that stand back to back; the buffer is never written again. */
  send(buffer: Uint8Array, start: number, end: number, count: number): void;
  /** Bytes sent to its session, or waiting for it, that it has not consumed. */
  readonly load: number;
}

export interface LaneView {
  readonly members: readonly LaneMember[];
  /** Monotonic milliseconds. */
  now(): number;
  /** Calls `onTimer` of the delivery after `delay` ms; one at a time, a second call moves it. */
  wake(delay: number): void;
}

/** The options of a subscription that its return handler looks at. */
export interface ReturnOptions {
  readonly group: string;
  /** Messages a second per key. */
  readonly rate: number;
}

/** What a return handler does for one lane. */
export interface LaneDelivery {
  /** `count` responses back to back. The buffer may be kept; it is never written again. */
  deliver(buffer: Uint8Array, start: number, end: number, count: number): void;
  onTimer?(): void;
  /** Hands out what it holds back: a status, an end or a new generation follows. */
  flush?(): void;
}

/** Chooses which of a lane's subscribers get a response, and when. */
export interface ReturnHandler {
  /** Says what is wrong with the options, or nothing. */
  check?(options: ReturnOptions): string | undefined;
  open(lane: LaneView, options: ReturnOptions): LaneDelivery;
  /** Whether a joiner gets what is kept (rule 9); otherwise only the first one of a lane does. Default true. */
  readonly snapshots?: boolean;
}

/** Hears of probes that answer or come from providers (rule 5). */
export interface ProbeListener {
  onProbe(probe: { code: number; provider: string; params: string; reply: boolean }): void;
}

/** An application message (type 128..255). */
export interface ApplicationMessage {
  readonly type: number;
  readonly code: number;
  readonly line: number;
  /** The whole message with its header. */
  readonly bytes: Uint8Array;
  readonly body: Uint8Array;
  /** Name of the session it came from. */
  readonly from: string;
}

export interface ApplicationContext {
  /**
   * Answers the sender with a message of the same code and line. Returns false when it has no room for it now, or is gone.
   * @throws TrunklineError OPTION_INVALID: `type` is not 128..255
   */
  reply(type: number, body: Uint8Array): boolean;
  /**
   * Sends it on, as it is, to the provider(s) the send handler of its code chooses; returns how many had room for it.
   */
  forward(): number;
}

export interface ApplicationHandler {
  onMessage(message: ApplicationMessage, context: ApplicationContext): void;
}

/** Handlers by the names that the configuration uses. */
export interface Handlers {
  readonly send: ReadonlyMap<string, SendHandler>;
  readonly return: ReadonlyMap<string, ReturnHandler>;
  readonly probe: ReadonlyMap<string, ProbeListener>;
  readonly application: ReadonlyMap<number, ApplicationHandler>;
}
