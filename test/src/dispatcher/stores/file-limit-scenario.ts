// Stores until files may not grow any more, as one process: `node file-limit-scenario.js DIRECTORY`. Prints how many.
import assert from 'node:assert/strict';
import { writeSync } from 'node:fs';
import { SqliteStore } from '@trunkline/dispatcher/stores';
import { chunk, commit, put, readAll, rejects } from './helpers.js';

const [directory = ''] = process.argv.slice(2);
const store = new SqliteStore({ directory, logBytes: 512 * 1024, reserveBytes: 64 * 1024 });
await store.open();
const publish = (sequence: number) => store.commit(commit({ append: [chunk(1, sequence, sequence, 60_000)] }));
let stored = 0;
for (;;) {
  try {
    await publish(stored + 1);
    stored++;
  } catch {
    break;
  }
  assert.ok(stored < 1000, 'files may grow');
}
for (let round = 1; round <= 100; round++) {
  await rejects(publish(stored + 1), 'STORE_FULL');
  await store.commit(commit({ put: put({ group: String(round) }) }));
}
assert.equal((await readAll(store, 1)).length, stored);
await store.close();
writeSync(1, String(stored));
