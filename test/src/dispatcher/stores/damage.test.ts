import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type StoreContents, StoreDamage } from '@trunkline/dispatcher/stores';
import { TrunklineError } from '@trunkline/proto';
import {
  assertNothingSilent,
  change,
  changeBehind,
  closedStore,
  databaseOf,
  everyPage,
  folder,
  judge,
  logOf,
  noteOf,
  opened,
  PAGE,
  salvage,
  snapshot,
  written,
} from './damaged-files.js';
import { assertChunks, chunk, commit, put, ranges, readAll, record, rejects } from './helpers.js';

test('a directory that is missing is made', async (context) => {
  const directory = join(folder(context), 'a', 'b');
  const store = opened(context, directory);
  const { queues } = await store.open();
  assert.deepEqual(queues, []);
  assert.ok(existsSync(databaseOf(directory)));
});

test('a database that is missing or empty, beside a note that there was one, is not taken for a first start', async (context) => {
  for (const lose of [(file: string) => rmSync(file), (file: string) => truncateSync(file, 0)]) {
    const directory = await closedStore(context);
    lose(databaseOf(directory));
    for (let start = 0; start < 2; start++) {
      await rejects(opened(context, directory).open(), 'STORE_DAMAGED', /there was a store before/);
    }
  }
});

test('a log without its database is not taken for a first start', async (context) => {
  const directory = await closedStore(context);
  writeFileSync(logOf(directory), 'left over');
  rmSync(databaseOf(directory));
  rmSync(noteOf(directory));
  await rejects(opened(context, directory).open(), 'STORE_DAMAGED', /missing/);
});

test('a note that is missing or damaged is written again', async (context) => {
  const directory = await closedStore(context);
  rmSync(noteOf(directory));
  for (const text of [undefined, '', 'something else that is longer than a note']) {
    if (text !== undefined) writeFileSync(noteOf(directory), text);
    const store = opened(context, directory);
    const { damages } = await store.open();
    assert.deepEqual(damages, []);
    assert.equal(await assertNothingSilent(store, []), 0);
    await store.close();
  }
});

const wholeFile: [string, (bytes: Buffer) => Buffer, RegExp][] = [
  ['filled with NUL', (bytes) => bytes.fill(0), /./],
  ['with a damaged header', (bytes) => bytes.fill(0xff, 0, 16), /not a database/],
  ['of another application', (bytes) => bytes.fill(1, 68, 72), /not one of Trunkline/],
  ['that is a text', () => Buffer.from('some text'.repeat(5000)), /not a database/],
];
for (const [what, edit, message] of wholeFile) {
  test(`a database ${what} is refused, each time alike`, async (context) => {
    const directory = await closedStore(context);
    change(databaseOf(directory), edit);
    const before = readFileSync(databaseOf(directory));
    for (let start = 0; start < 2; start++) {
      await rejects(opened(context, directory).open(), 'STORE_DAMAGED', message);
    }
    assert.equal(Buffer.compare(readFileSync(databaseOf(directory)), before), 0, 'the file is as it was');
  });
}

test('a database of a later format is refused', async (context) => {
  const directory = await closedStore(context);
  change(databaseOf(directory), (bytes) => void bytes.writeUInt32BE(2, 60));
  await rejects(opened(context, directory).open(), 'STORE_FAILED', /format 2/);
});

test('a directory in place of the file, and a file in place of the directory', async (context) => {
  const parent = folder(context);
  mkdirSync(databaseOf(parent));
  await rejects(opened(context, parent).open(), 'STORE_FAILED', /is a directory/);
  const file = join(parent, 'file');
  writeFileSync(file, '');
  await rejects(opened(context, file).open(), 'STORE_FAILED');
});

test('any page filled with NUL: refused, or the range that is gone is told (every 10th page)', (context) =>
  everyPage(context, 10));

test('a database that was cut off anywhere: refused, or the range that is gone is told', async (context) => {
  const directory = await closedStore(context);
  const { size } = statSync(databaseOf(directory));
  for (const length of [100, 5000, PAGE, 3 * PAGE, Math.floor(size / 2), size - PAGE, size - 1]) {
    const damaged = snapshot(context, directory);
    truncateSync(databaseOf(damaged), length);
    await judge(context, damaged);
  }
});

test('a message that was changed is told when it is read, and everything around it goes on', async (context) => {
  const directory = await closedStore(context);
  changeBehind(databaseOf(directory), '1:701-710;', 100);
  changeBehind(databaseOf(directory), '2:401-500;', 200);
  const store = opened(context, directory);
  const { damages } = await store.open();
  assert.deepEqual(damages, []);
  const one = await salvage(store, 1);
  assert.deepEqual(
    one.damages.map(({ first, last }) => [first, last]),
    [[701, 710]],
  );
  assert.equal(one.chunks.length, 149);
  await assert.rejects(store.read(2, 450, 1), (error) => {
    assert.ok(error instanceof StoreDamage);
    assert.deepEqual([error.damage.queue, error.damage.first, error.damage.last], [2, 401, 500]);
    return true;
  });
  await store.commit(commit({ append: [chunk(1, 1501), chunk(2, 1201)], trim: [{ queue: 1, upTo: 710 }] }));
  assert.equal((await readAll(store, 1))[0]!.first, 711);
});

test('a queue whose pages are gone can be trimmed and dropped, and begins again', async (context) => {
  const directory = await closedStore(context);
  change(databaseOf(directory), (bytes) => {
    const { bytes: inside } = written[2]![4]!;
    for (const at of [bytes.indexOf('2:201-300;'), bytes.indexOf(inside.subarray(20_000, 22_000))]) {
      assert.ok(at > 0);
      const page = at - (at % PAGE);
      bytes.fill(0, page, page + PAGE);
    }
    return undefined;
  });
  let store = opened(context, directory);
  const { damages } = await store.open();
  const { damages: found } = await salvage(store, 2);
  assert.ok(damages.length + found.length > 0, 'some of it is gone');
  await store.commit(commit({ trim: [{ queue: 2, upTo: 600 }], put: put({ group: '600' }) }));
  const left = await salvage(store, 2);
  assert.ok(left.chunks.every(({ first }) => first > 600));
  assertChunks(await readAll(store, 1), written[1]!);
  await store.commit(commit({ drop: [2] }));
  await store.commit(commit({ append: [chunk(2, 5, 8)] }));
  assert.equal(ranges(await readAll(store, 2)), '5-8');
  await store.close();
  store = opened(context, directory);
  const again = await store.open();
  assert.deepEqual(again.damages, []);
  assert.equal(record(again.records.get('group')), '600');
  assert.equal(ranges(await readAll(store, 2)), '5-8');
});

test('a record that was changed is told by its key', async (context) => {
  const directory = await closedStore(context);
  changeBehind(databaseOf(directory), 'second record', 3);
  const { records, damages } = await opened(context, directory).open();
  assert.deepEqual([...records.keys()], ['one']);
  assert.equal(damages.length, 1);
  assert.match(damages[0]!.message, /"two" was changed/);
});

test('a log that was cut off, deleted or changed: what came before is there, and the loss is told', async (context) => {
  const directory = folder(context);
  const store = opened(context, directory);
  await store.open();
  for (let first = 1; first <= 20; first++) {
    await store.commit(commit({ append: [chunk(1, first, first, 5000)], put: put({ last: String(first) }) }));
  }
  const killed = snapshot(context, directory);
  await store.close();
  const { size } = statSync(logOf(killed));
  const edits: [string, (log: string) => void, number][] = [
    ['as it was', () => {}, 20],
    ['deleted', (log) => rmSync(log), 0],
    ['empty', (log) => truncateSync(log, 0), 0],
    ['only a header', (log) => truncateSync(log, 32), 0],
    ['cut to a half', (log) => truncateSync(log, Math.floor(size / 2)), 0],
    ['without its last byte', (log) => truncateSync(log, size - 1), 0],
    ['changed in the middle', (log) => change(log, (bytes) => void bytes.fill(0, size / 2, size / 2 + 100)), 0],
    ['of NUL', (log) => change(log, (bytes) => void bytes.fill(0)), 0],
  ];
  for (const [what, edit, whole] of edits) {
    const damaged = snapshot(context, killed);
    edit(logOf(damaged));
    const again = opened(context, damaged);
    let contents: StoreContents;
    try {
      contents = await again.open();
    } catch (error) {
      // nothing had moved into the database yet, so there is nothing left to come up with
      assert.ok(error instanceof TrunklineError && error.code === 'STORE_DAMAGED', `${what}: ${error}`);
      continue;
    }
    const { records, queues, damages } = contents;
    const last = Number(record(records.get('last')) ?? 0);
    assert.equal(queues[0]?.last ?? 0, last, `${what}: whole commits only`);
    assert.equal((await readAll(again, 1)).length, last);
    if (whole > 0) assert.equal(last, whole, what);
    assert.equal(damages.length, last === 20 ? 0 : 1, `${what}: ${last} of 20`);
    if (last < 20) assert.match(damages[0]!.message, new RegExp(`the last ${20 - last} commits are missing`));
    await again.commit(commit({ append: [chunk(1, last + 1)] }));
    await again.close();
    const third = opened(context, damaged);
    assert.deepEqual((await third.open()).damages, [], 'told once');
  }
});
