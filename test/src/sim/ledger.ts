import type { Keep } from '@trunkline/dispatcher';
import { type Clock, DataMessage, readU32 } from '@trunkline/proto';
import { type Ending, Stream } from '../../../dispatcher/dist/stream.js';
import type { Body } from './scenario.js';

/** One response as the dispatcher stamped it. */
export interface Entry {
  readonly sequence: number;
  readonly generation: number;
  readonly key: string;
  readonly body: Body;
}

/** Everything one stream ever received, by sequence. */
export class StreamLedger {
  /** Index = sequence - 1. */
  readonly entries: Entry[] = [];
  /** What was kept from which sequence on; a reload may begin anew. */
  readonly keeps: { readonly from: number; readonly keep: Keep }[];
  /** It came to its end for everyone. */
  ended = false;
  private kept: unknown;

  /** Times somebody joined. */
  joins = 0;

  constructor(
    readonly stream: Stream,
    /** When it was first seen, ms of virtual time. */
    readonly born: number,
  ) {
    this.kept = stream.kept;
    this.keeps = [{ from: stream.sequence, keep: stream.service.definition.keep }];
  }

  get sequence(): number {
    return this.entries.length;
  }

  /** Looks whether a reload made the stream keep something else. */
  look(): void {
    if (this.kept === this.stream.kept) return;
    this.kept = this.stream.kept;
    this.keeps.push({ from: this.stream.sequence, keep: this.stream.service.definition.keep });
  }

  /** What a joiner at `joined` is given of what came after `after`; undefined: a reload makes it ambiguous. */
  keptAt(joined: number, after: number): Entry[] | undefined {
    const candidates = this.keeps.filter(({ from }) => from <= joined);
    const last = candidates.at(-1);
    if (last === undefined || (last.from === joined && candidates.length > 1)) return undefined;
    const since = this.entries.slice(last.from, joined);
    return select(last.keep, since).filter(({ sequence }) => sequence > after);
  }
}

function select(keep: Keep, entries: readonly Entry[]): Entry[] {
  switch (keep.mode) {
    case 'none':
      return [];
    case 'last':
      return entries.slice(-1);
    case 'ring':
      return entries.slice(-keep.size);
    case 'lastPerKey': {
      const newest = new Map(entries.map((entry) => [entry.key, entry]));
      return [...newest.values()].sort((left, right) => left.sequence - right.sequence).slice(-keep.max);
    }
  }
}

export function textOf(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}

/** The ledgers of all streams of all lives of the dispatcher. */
export class Ledgers {
  private readonly byEpoch = new Map<string, StreamLedger>();
  private readonly byStream = new Map<Stream, StreamLedger>();
  onEnd: (ledger: StreamLedger, ending: Ending) => void = () => {};
  onEntry: (ledger: StreamLedger, entry: Entry) => void = () => {};

  constructor(private readonly clock: Clock) {}

  of(stream: Stream): StreamLedger {
    let ledger = this.byStream.get(stream);
    if (ledger === undefined) {
      ledger = new StreamLedger(stream, this.clock.now());
      this.byStream.set(stream, ledger);
      this.byEpoch.set(textOf(stream.epoch), ledger);
    }
    return ledger;
  }

  find(epoch: string): StreamLedger | undefined {
    return this.byEpoch.get(epoch);
  }

  /** After a step of the dispatcher. */
  look(streams: readonly Stream[]): void {
    for (const stream of streams) this.of(stream).look();
  }

  /** A run of responses that was stamped. */
  received(stream: Stream, buffer: Uint8Array, start: number, end: number): void {
    const ledger = this.of(stream);
    for (let at = start; at < end; at += readU32(buffer, at)) {
      const message = new DataMessage(buffer, at);
      const { sequence, generation, key } = message;
      const entry = { sequence, generation, key, body: message.json() as Body };
      ledger.entries.push(entry);
      this.onEntry(ledger, entry);
    }
  }

  /** Lets the ledgers see what streams receive, until the returned function is called. */
  watch(): () => void {
    const original = Stream.prototype.receive;
    const originalEnd = Stream.prototype.end;
    const originalJoin = Stream.prototype.join;
    const ledgers = this;
    Stream.prototype.receive = function (this: Stream, buffer, start, end, count) {
      // created before anything of the run is stamped
      ledgers.of(this);
      // fan-out first stamps: look at it afterwards, but before anybody was delivered to, as links deliver later
      original.call(this, buffer, start, end, count);
      ledgers.received(this, buffer, start, end);
    };
    Stream.prototype.end = function (this: Stream, ending) {
      const ledger = ledgers.of(this);
      ledger.ended = true;
      ledgers.onEnd(ledger, ending);
      originalEnd.call(this, ending);
    };
    Stream.prototype.join = function (this: Stream, member) {
      ledgers.of(this).joins++;
      originalJoin.call(this, member);
    };
    return () => {
      Stream.prototype.join = originalJoin;
      Stream.prototype.receive = original;
      Stream.prototype.end = originalEnd;
    };
  }
}
