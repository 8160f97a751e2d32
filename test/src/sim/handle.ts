import type { AcceptedEvent, EndEvent, GapEvent, StatusEvent, Subscription } from '@trunkline/subscriber/core';
import { type Ledgers, type StreamLedger, textOf } from './ledger.js';
import type { Body, FilterCase } from './scenario.js';

export interface HandleOptions {
  readonly code: number;
  /** The text that the params mean. */
  readonly text: string;
  readonly filter: FilterCase | undefined;
  readonly mode: 'broadcast' | 'group' | 'latest';
  readonly group: string;
  readonly start: 'kept' | 'live' | 'after';
  readonly overflow: 'dropOldest' | 'latest' | 'disconnect' | 'block';
  /** What it goes on after, with start `after`. */
  readonly place: Place | undefined;
}

export interface Place {
  readonly code: number;
  readonly text: string;
  readonly sequence: number;
  readonly epoch: Uint8Array;
}

/** What a handle saw between an ACCEPTED and the end of that session. */
export class Segment {
  readonly epoch: string;
  readonly ledger: StreamLedger | undefined;
  /** Last sequence of the stream when the handle joined. */
  readonly joined: number;
  /** Generation that was last told, by ACCEPTED or STATUS. */
  generation: number;
  readonly told: Set<number>;
  readonly delivered: { readonly sequence: number; readonly snapshot: boolean; readonly key: string }[] = [];
  readonly seen = new Set<number>();
  live = false;
  /** Responses that a GAP for overflow told of. */
  missed = 0;
  /** Where they were. */
  readonly gaps: GapEvent[] = [];
  historyGap = false;
  /** Until the session ended. */
  open = true;
  /** Another handle of the process has the same lane: what a GAP counts may be meant for it. */
  shared = false;
  /** Batches of the session were lost or doubled, so that nothing but its end can be expected. */
  damaged = false;
  /** Up to here every matching response was delivered or told. */
  cursor: number;

  constructor(
    readonly event: AcceptedEvent,
    ledgers: Ledgers,
    /** What is asked for of the same epoch by a resumed handle: nothing up to here again. */
    readonly before: number,
  ) {
    this.epoch = textOf(event.epoch);
    this.ledger = ledgers.find(this.epoch);
    this.joined = event.sequence;
    this.generation = event.generation;
    this.told = new Set([event.generation]);
    this.cursor = event.sequence;
  }

  /** Whether a GAP may mean it. */
  toldOf(sequence: number): boolean {
    return this.gaps.some(({ first, last }) => sequence >= first && sequence <= last);
  }
}

/** One subscription of one subscriber process, with all that was seen of it. */
export class Handle {
  segment: Segment | undefined;
  readonly segments: Segment[] = [];
  subscription!: Subscription;
  ended: EndEvent | undefined;
  refused = false;
  /** `unsubscribe` returned: nothing may be heard any more. */
  left = false;
  /** Ends it by its signal instead of `unsubscribe`. */
  aborter: AbortController | undefined;
  /** Handlers that have not finished. */
  running = 0;
  /** How often a session ended since it was subscribed. */
  losses = 0;
  lastStatus: StatusEvent | undefined;
  readonly since: number;

  constructor(
    readonly id: number,
    readonly owner: string,
    readonly options: HandleOptions,
    now: number,
  ) {
    this.since = now;
  }

  get wanted(): boolean {
    return this.ended === undefined && !this.left;
  }

  get laneKey(): string {
    const { code, text, filter, mode, group } = this.options;
    return JSON.stringify([code, text, filter?.text, mode, group]);
  }

  matches(body: Body): boolean {
    return this.options.filter === undefined || this.options.filter.matches(body);
  }

  toString(): string {
    const { code, text, filter, mode, overflow, start } = this.options;
    return `#${this.id} ${this.owner} ${code} ${text} ${filter?.text ?? ''} ${mode}/${overflow}/${start}`;
  }
}

/** Hears what the application's handlers hear. */
export interface HandleListener {
  accepted?(handle: Handle, segment: Segment): void;
  message?(handle: Handle, segment: Segment, seen: SeenMessage): void;
  status?(handle: Handle, status: StatusEvent): void;
  gap?(handle: Handle, gap: GapEvent): void;
  end?(handle: Handle, end: EndEvent): void;
}

export interface SeenMessage {
  readonly body: Body;
  readonly sequence: number;
  readonly generation: number;
  readonly snapshot: boolean;
  readonly final: boolean;
  readonly key: string;
}
