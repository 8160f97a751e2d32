import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { SqliteStore } from '@trunkline/dispatcher/stores';
import { runScript } from '../../support/command.js';
import { folder, opened } from './damaged-files.js';
import { chunk, commit, ranges, readAll, rejects } from './helpers.js';

const writer = fileURLToPath(new URL('./writer.js', import.meta.url));

test('a second process is told that the store is taken, and disturbs nothing', async (context) => {
  const directory = folder(context);
  const child = runScript(context, [writer, directory]);
  await child.until(() => child.lines.length > 3, 'it stores');
  for (let start = 0; start < 2; start++) {
    await rejects(opened(context, directory).open(), 'STORE_LOCKED', /another process/);
  }
  const { length } = child.lines;
  await child.until(() => child.lines.length > length + 3, 'it goes on storing');
  await child.kill('SIGKILL');
  const { damages } = await opened(context, directory).open();
  assert.deepEqual(damages, []);
});

test('a second store in one process is told so too, and the lock of the first stays', async (context) => {
  const directory = folder(context);
  const first = opened(context, directory);
  await first.open();
  await rejects(opened(context, directory).open(), 'STORE_LOCKED');
  const child = runScript(context, [writer, directory]);
  assert.notEqual(await child.exited, 0);
  assert.match(child.err, /STORE_LOCKED/);
  await first.commit(commit({ append: [chunk(1, 1)] }));
  assert.equal(ranges(await readAll(first, 1)), '1-1');
});

const endings: [string, string][] = [
  ['throws', `throw new Error('on purpose');`],
  ['rejects', `Promise.reject(new Error('on purpose'));`],
  ['exits', 'process.exit(3);'],
  ['answers what nobody asked, then throws', `parentPort.postMessage({ id: 99, value: 1 }); throw new Error();`],
];
for (const [what, code] of endings) {
  test(`a thread that ${what} rejects everything with STORE_FAILED and ends nothing else`, async (context) => {
    const script = join(folder(context), 'worker.mjs');
    const answer = `parentPort.postMessage({ id: request.id, value: { records: new Map(), queues: [], damages: [] } });`;
    writeFileSync(
      script,
      `import { parentPort } from 'node:worker_threads';
       parentPort.on('message', (request) => { if (request.kind === 'open') ${answer} else { ${code} } });`,
    );
    const store = new SqliteStore({ directory: folder(context) }, pathToFileURL(script));
    await store.open();
    const asked = [
      store.commit(commit({ append: [chunk(1, 1)] })),
      store.commit(commit({ append: [chunk(1, 2)] })),
      store.read(1, 1, 1),
      store.usage(),
    ];
    await Promise.all(asked.map((one) => rejects(one, 'STORE_FAILED')));
    await rejects(store.commit(commit({})), 'STORE_FAILED');
    await store.close();
    await store.close();
  });
}

test('a thread that cannot be started is a failed store', async (context) => {
  const store = new SqliteStore({ directory: folder(context) }, pathToFileURL('/missing/worker.js'));
  await rejects(store.open(), 'STORE_FAILED');
  await store.close();
});
