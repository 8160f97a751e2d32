// Messages stored a second, by the durable store and by the least that flushes at all: append and fdatasync.
// node bench/store.mjs [--seconds N] [--directory DIR]
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { SqliteStore } from '@trunkline/dispatcher/stores';

const { values } = parseArgs({ options: { seconds: { type: 'string' }, directory: { type: 'string' } } });
const seconds = Number(values.seconds ?? 2);
const rounds = 3;
const parent = values.directory ?? tmpdir();

const median = (numbers) => numbers.sort((left, right) => left - right)[numbers.length >> 1];
const show = (number) => Math.round(number).toLocaleString('en').padStart(11);

/** The store as the queue engine uses it: `flight` commits under way, everything trimmed that is 64 commits old. */
async function store(directory, perCommit, size, flight) {
  const store = new SqliteStore({ directory });
  await store.open();
  const until = performance.now() + seconds * 1000;
  let next = 1;
  let done = 0;
  let blocked = 0;
  const waits = [];
  async function writer() {
    while (performance.now() < until) {
      const bytes = new Uint8Array(perCommit * size).fill(next);
      const first = next;
      next += perCommit;
      const trim = first > 64 * perCommit ? [{ queue: 1, upTo: first - 64 * perCommit }] : [];
      const put = new Map(trim.length === 0 ? [] : [['group', new Uint8Array(64)]]);
      const before = performance.now();
      const stored = store.commit({ append: [{ queue: 1, first, last: next - 1, bytes }], put, trim, drop: [] });
      blocked += performance.now() - before;
      await stored;
      waits.push(performance.now() - before);
      done += perCommit;
    }
  }
  const begin = performance.now();
  await Promise.all(Array.from({ length: flight }, writer));
  const rate = (done / (performance.now() - begin)) * 1000;
  await store.close();
  waits.sort((left, right) => left - right);
  return {
    rate,
    p50: waits[waits.length >> 1],
    p99: waits[Math.floor(waits.length * 0.99)],
    loop: blocked / waits.length,
  };
}

function limit(directory, perCommit, size) {
  const file = openSync(join(directory, 'limit'), 'w');
  const bytes = new Uint8Array(perCommit * size).fill(1);
  const begin = performance.now();
  const until = begin + seconds * 1000;
  let done = 0;
  while (performance.now() < until) {
    writeSync(file, bytes);
    fdatasyncSync(file);
    done += perCommit;
  }
  closeSync(file);
  return (done / (performance.now() - begin)) * 1000;
}

console.log(`node ${process.version}, ${seconds} s each, median of ${rounds}, in ${parent}`);
console.log('   size  a commit  in flight   messages/s  wait p50 ms  p99 ms  loop ms  of the limit');
for (const size of [100, 1024]) {
  for (const perCommit of [256, 2048]) {
    const limits = [];
    const results = { 1: [], 2: [] };
    for (let round = 0; round < rounds; round++) {
      for (const run of ['limit', 1, 2]) {
        const directory = mkdtempSync(join(parent, 'trunkline-bench-'));
        if (run === 'limit') limits.push(limit(directory, perCommit, size));
        else results[run].push(await store(directory, perCommit, size, run));
        rmSync(directory, { recursive: true });
      }
    }
    const most = median(limits);
    console.log(`${String(size).padStart(7)} ${String(perCommit).padStart(9)}      limit ${show(most)}`);
    for (const flight of [1, 2]) {
      const middle = (key) => median(results[flight].map((result) => result[key]));
      const columns = [
        String(size).padStart(7),
        String(perCommit).padStart(9),
        String(flight).padStart(10),
        ` ${show(middle('rate'))}`,
        middle('p50').toFixed(2).padStart(12),
        middle('p99').toFixed(2).padStart(7),
        middle('loop').toFixed(3).padStart(8),
        `${((middle('rate') / most) * 100).toFixed(0)} %`.padStart(13),
      ];
      console.log(columns.join(' '));
    }
  }
}
