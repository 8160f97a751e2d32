import { Ranges } from './ranges.js';
import { RecordReader, RecordWriter } from './record-bytes.js';

/** What is stored of a group. */
export interface GroupState {
  filter: string;
  /** Everything up to here is done with. */
  position: number;
  /** Nothing above this was ever delivered. */
  reserved: number;
  /** What is done with above the position. */
  acked: Ranges;
  /** How often messages above the position were or are about to be delivered, where that is not told by `reserved`. */
  counts: Map<number, number>;
  /** Until when messages wait that consumers asked to get later, in the queues' time. */
  delays: Map<number, number>;
  /** Messages that were dropped before the group got them and that nobody was told of. */
  lost: { count: number; first: number; last: number };
}

/** A group that has done nothing yet. */
export function newGroup(position: number): Omit<GroupState, 'filter'> {
  const lost = { count: 0, first: 0, last: 0 };
  return { position, reserved: position, acked: new Ranges(), counts: new Map(), delays: new Map(), lost };
}

/** Position and what is done with above it, once `more` is done with too. */
export function doneWith(position: number, acked: Ranges, more: Ranges): { position: number; acked: Ranges } {
  if (more.size === 0) return { position, acked };
  const all = new Ranges();
  all.addAll(acked);
  all.addAll(more);
  const head = all.head();
  if (head?.first !== position + 1) return { position, acked: all };
  all.remove(head.first, head.last);
  return { position: head.last, acked: all };
}

export function encodeGroup(state: GroupState): Uint8Array {
  const { filter, position, reserved, acked, counts, lost, delays } = state;
  const writer = new RecordWriter()
    .integer(1)
    .text(filter)
    .integer(position)
    .integer(Math.max(0, reserved - position));
  writer.integer(lost.count).integer(lost.first).integer(lost.last);
  let next = position;
  writer.integer(acked.length);
  for (const { first, last } of acked) {
    writer.integer(first - next).integer(last - first);
    next = last;
  }
  const runs = countRuns(counts, position);
  next = position;
  writer.integer(runs.length);
  for (const { first, length, count } of runs) {
    writer
      .integer(first - next)
      .integer(length)
      .integer(count);
    next = first;
  }
  encodeDelays(writer, position, delays);
  return writer.finish();
}

function encodeDelays(writer: RecordWriter, position: number, delays: ReadonlyMap<number, number>): void {
  const sorted = [...delays].filter(([sequence]) => sequence > position).sort(([one], [other]) => one - other);
  const earliest = sorted.reduce((least, [, due]) => Math.min(least, due), Number.MAX_SAFE_INTEGER);
  writer.integer(sorted.length);
  if (sorted.length > 0) writer.integer(earliest);
  let next = position;
  for (const [sequence, due] of sorted) {
    writer.integer(sequence - next).integer(due - earliest);
    next = sequence;
  }
}

/** Records of earlier versions end before the delays. */
function decodeDelays(reader: RecordReader, position: number): Map<number, number> {
  const delays = new Map<number, number>();
  let left = reader.done ? 0 : reader.integer();
  const earliest = left > 0 ? reader.integer() : 0;
  for (let next = position; left > 0; left--) {
    next += reader.integer();
    delays.set(next, earliest + reader.integer());
  }
  return delays;
}

function countRuns(
  counts: ReadonlyMap<number, number>,
  position: number,
): { first: number; length: number; count: number }[] {
  const runs: { first: number; length: number; count: number }[] = [];
  for (const [sequence, count] of [...counts].sort(([one], [other]) => one - other)) {
    // dead letters on their way are done with in the record, and not yet here
    if (sequence <= position) continue;
    const run = runs[runs.length - 1];
    if (run !== undefined && run.first + run.length === sequence && run.count === count) run.length++;
    else runs.push({ first: sequence, length: 1, count });
  }
  return runs;
}

/** @throws TrunklineError STORE_DAMAGED */
export function decodeGroup(bytes: Uint8Array): GroupState {
  const reader = new RecordReader(bytes);
  reader.integer();
  const filter = reader.text();
  const position = reader.integer();
  const reserved = position + reader.integer();
  const lost = { count: reader.integer(), first: reader.integer(), last: reader.integer() };
  const acked = new Ranges();
  let next = position;
  for (let left = reader.integer(); left > 0; left--) {
    const first = next + reader.integer();
    next = first + reader.integer();
    acked.add(first, next);
  }
  const counts = new Map<number, number>();
  next = position;
  for (let left = reader.integer(); left > 0; left--) {
    next += reader.integer();
    const length = reader.integer();
    const count = reader.integer();
    for (let index = 0; index < length; index++) counts.set(next + index, count);
  }
  return { filter, position, reserved, acked, counts, lost, delays: decodeDelays(reader, position) };
}
