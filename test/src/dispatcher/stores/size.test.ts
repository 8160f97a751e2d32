import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { test } from 'node:test';
import { until } from '../../support/wait.js';
import { databaseOf, folder, logOf, opened, sizes } from './damaged-files.js';
import { chunk, commit, put, ranges, readAll } from './helpers.js';

const MIB = 1024 * 1024;

test('a store that much goes through stays as small as what it keeps; a reader beside it changes nothing (F85)', async (context) => {
  const directory = folder(context);
  const store = opened(context, directory);
  await store.open();
  let log = 0;
  // 30 MiB through a queue that keeps 2 MiB
  for (let first = 1; first <= 600; first++) {
    const trim = [{ queue: 1, upTo: first - 40 }];
    await store.commit(commit({ append: [chunk(1, first, first, 50_000)], trim, put: put({ group: String(first) }) }));
    if (first % 40 === 0) assert.ok((await store.read(1, first - 20, 1)).length === 1);
    log = Math.max(log, statSync(logOf(directory)).size);
  }
  assert.ok(log <= 3 * sizes.logBytes, `the log took ${log} bytes`);
  const { size } = statSync(databaseOf(directory));
  assert.ok(size <= 8 * MIB, `the database took ${size} bytes`);
  assert.equal((await readAll(store, 1)).length, 40);
});

test('the room of a dropped queue, and of many trimmed chunks, is given back', async (context) => {
  const directory = folder(context);
  const store = opened(context, directory);
  await store.open();
  for (const queue of [1, 2]) {
    for (let first = 1; first <= 300; first += 10) {
      const append = Array.from({ length: 10 }, (_, index) => chunk(queue, first + index, first + index, 100_000));
      await store.commit(commit({ append }));
    }
  }
  assert.ok((await store.usage()).bytes > 50 * MIB);
  await store.commit(commit({ drop: [1], trim: [{ queue: 2, upTo: 299 }] }));
  assert.equal(ranges(await readAll(store, 2)), '300-300');
  // while it is given back everything goes on
  let next = 301;
  const small = async () => {
    await store.commit(commit({ append: [chunk(2, next), chunk(1, next - 300)] }));
    next++;
    return statSync(databaseOf(directory)).size < 24 * MIB;
  };
  await until(small, 'the database is small', 30_000);
  await until(() => statSync(databaseOf(directory)).size < 20 * MIB, 'it is smaller still', 30_000);
  assert.equal((await readAll(store, 2)).length, next - 300);
  assert.equal((await readAll(store, 1)).length, next - 301);
});

test('trimmed chunks whose rows are not deleted yet stay forgotten when the store is opened again', async (context) => {
  const directory = folder(context);
  let store = opened(context, directory);
  await store.open();
  const append = Array.from({ length: 5000 }, (_, index) => chunk(1, index + 1));
  await store.commit(commit({ append }));
  const trimmed = store.commit(commit({ trim: [{ queue: 1, upTo: 4998 }] }));
  const closed = store.close();
  await trimmed;
  await closed;
  store = opened(context, directory);
  const { queues } = await store.open();
  assert.deepEqual(queues, [{ queue: 1, first: 4999, last: 5000, bytes: 80 }]);
  assert.equal(ranges(await readAll(store, 1)), '4999-4999 5000-5000');
  await store.commit(commit({ trim: [{ queue: 1, upTo: 5000 }] }));
  // numbers that were there before begin again
  await store.commit(commit({ append: [chunk(1, 10, 20)] }));
  assert.equal(ranges(await readAll(store, 1)), '10-20');
});
