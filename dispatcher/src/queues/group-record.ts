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
  /** Messages that were dropped before the group got them and that nobody was told of. */
  lost: { count: number; first: number; last: number };
}

export function encodeGroup(state: GroupState): Uint8Array {
  const { filter, position, reserved, acked, counts, lost } = state;
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
  const runs = countRuns(counts);
  next = position;
  writer.integer(runs.length);
  for (const { first, length, count } of runs) {
    writer
      .integer(first - next)
      .integer(length)
      .integer(count);
    next = first;
  }
  return writer.finish();
}

function countRuns(counts: ReadonlyMap<number, number>): { first: number; length: number; count: number }[] {
  const runs: { first: number; length: number; count: number }[] = [];
  for (const [sequence, count] of [...counts].sort(([one], [other]) => one - other)) {
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
  return { filter, position, reserved, acked, counts, lost };
}
