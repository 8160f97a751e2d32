import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { folder, opened } from './damaged-files.js';
import { chunk, commit, readAll, record } from './helpers.js';

const script = fileURLToPath(new URL('./full-disk-scenario.js', import.meta.url));
const limited = fileURLToPath(new URL('./file-limit-scenario.js', import.meta.url));
const MIB = 1024 * 1024;

function run(command: string, args: string[]): { status: number | null; stdout: string; stderr: string } {
  const env = { ...process.env };
  delete env.NODE_TEST_CONTEXT;
  delete env.NODE_V8_COVERAGE;
  return spawnSync(command, args, { encoding: 'utf8', env, timeout: 60_000 });
}

/** Where no file may grow beyond so many blocks of 512 bytes. */
async function withFileLimit(context: TestContext, blocks: number): Promise<void> {
  const directory = folder(context);
  // the signal that a write beyond it brings is ignored by Node
  const shell = `ulimit -f ${blocks}; exec "$0" "$1" "$2"`;
  const { status, stdout, stderr } = run('sh', ['-c', shell, process.execPath, limited, directory]);
  assert.equal(status, 0, `${stdout}${stderr}`);
  const stored = Number(stdout);
  const store = opened(context, directory);
  const { records, queues, damages } = await store.open();
  assert.deepEqual(damages, []);
  assert.equal(record(records.get('group')), '100');
  assert.equal(queues[0]?.last, stored);
  await store.commit(commit({ append: [chunk(1, stored + 1)] }));
  assert.equal((await readAll(store, 1)).length, stored + 1);
}

test('files that may not grow: publishes are refused, acknowledgements go on, all is there later', (context) =>
  withFileLimit(context, 16384));

/** Runs in a mount namespace of its own, where the folder is a device of 32 MiB; as root or as a user. */
function onSmallDevice(directory: string, command: string): ReturnType<typeof run> {
  const shell = `mount -t tmpfs -o size=32m none "$2" && ${command}`;
  const namespaces = process.getuid?.() === 0 ? ['-m'] : ['-r', '-m'];
  return run('unshare', [...namespaces, 'sh', '-c', shell, process.execPath, script, directory]);
}

test('a device of 32 MiB that is full to the last byte: acknowledgements go on, publishing resumes (F85)', async (context) => {
  const directory = folder(context);
  if (onSmallDevice(directory, 'true').status !== 0) {
    context.diagnostic('nothing may be mounted here: a limit of 4 MiB for each file stands in');
    await withFileLimit(context, 8192);
    return;
  }
  const { status, stdout, stderr } = onSmallDevice(directory, 'exec "$0" "$1" "$2/data" 67108864 "$2/filler"');
  assert.equal(status, 0, `${stdout}${stderr}`);
  const { stored, bytes } = JSON.parse(stdout);
  assert.ok(stored > 100);
  assert.ok(bytes <= 32 * MIB, `${bytes} bytes`);
});
