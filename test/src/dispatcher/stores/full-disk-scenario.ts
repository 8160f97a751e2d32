// What happens on a full device, as one process: `node full-disk-scenario.js DIRECTORY BYTES-TO-OFFER FILLER-FILE`.
// The filler takes what the store leaves of the device, and is taken away at the end. Prints one JSON line.
import assert from 'node:assert/strict';
import { closeSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { SqliteStore } from '@trunkline/dispatcher/stores';
import { TrunklineError } from '@trunkline/proto';
import { chunk, commit, put, readAll, record } from './helpers.js';

const SIZE = 60_000;
const [directory = '', offer = '', filler = ''] = process.argv.slice(2);
let store = new SqliteStore({ directory });
await store.open();
let last = 0;
let refusals = 0;

async function publish(): Promise<boolean> {
  try {
    await store.commit(commit({ append: [chunk(1, last + 1, last + 1, SIZE)] }));
    last++;
    return true;
  } catch (error) {
    assert.ok(error instanceof TrunklineError && error.code === 'STORE_FULL' && error.retryable, String(error));
    refusals++;
    return false;
  }
}

/** Takes all that is left of the device. */
function fill(file: string): void {
  const open = openSync(file, 'a');
  for (const size of [65536, 4096, 1]) {
    try {
      for (;;) writeSync(open, Buffer.alloc(size));
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC');
    }
  }
  closeSync(open);
}

async function untilPublished(what: string): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!(await publish())) assert.ok(performance.now() < deadline, `publishing resumes ${what}`);
}

while (last * SIZE < Number(offer)) if (!(await publish())) break;
assert.equal(refusals, 1, 'the device became full');
const stored = last;
fill(filler);
assert.equal(statfsSync(directory).bavail, 0);
for (let round = 0; round < 20; round++) assert.equal(await publish(), false);

// groups go on: records that change with every acknowledgement, many times the size of the log
for (let round = 1; round <= 3000; round++) {
  await store.commit(commit({ put: put({ 'group/a': `position ${round}`, 'group/b': `${'x'.repeat(300)}${round}` }) }));
}
assert.equal((await readAll(store, 1)).length, stored, 'everything can be read');

// the process ends and comes back on the full device
await store.close();
store = new SqliteStore({ directory });
const contents = await store.open();
assert.deepEqual(contents.damages, []);
assert.equal(record(contents.records.get('group/a')), 'position 3000');
assert.equal(contents.queues[0]?.last, stored);

// what every group has passed makes room
const upTo = Math.floor(stored / 2);
await store.commit(commit({ trim: [{ queue: 1, upTo }], put: put({ 'group/a': 'half' }) }));
assert.equal((await readAll(store, 1))[0]?.first, upTo + 1);
for (let round = 0; round < 20; round++) await publish();
rmSync(filler);
await untilPublished('when there is room again');
for (let round = 0; round < 5; round++) await untilPublished('and goes on');
const { bytes, free } = await store.usage();
await store.close();
writeSync(1, `${JSON.stringify({ stored, refusals, bytes, free })}\n`);
