import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('../../../bench/main.mjs', import.meta.url));

interface Result {
  machine: { node: string; cores: number };
  versions: Record<string, { server: string }>;
  rows: { name: string; medians: Record<string, number>; results: Record<string, object[]> }[];
}

/** A run whose temporary files are all below a folder of the test. */
function start(t: TestContext, args: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-test-'));
  const temporary = join(folder, 'tmp');
  mkdirSync(temporary);
  const env = { ...process.env, TMPDIR: temporary };
  const child = spawn(process.execPath, [main, ...args], { env, cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  child.stdout.on('data', (data) => {
    output += data;
  });
  child.stderr.on('data', (data) => {
    output += data;
  });
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve));
  t.after(async () => {
    child.kill('SIGINT');
    await exited;
    rmSync(folder, { recursive: true, force: true });
  });
  return { child, folder, temporary, exited, output: () => output };
}

test('bench: one tiny scenario against the bare forwarder, with a complete report and nothing left', async (t) => {
  const args = ['--quick', '--only', 'pair-100', '--peers', 'limit', '--json', 'result.json'];
  const run = start(t, args);
  assert.equal(await run.exited, 0, run.output());
  const result = JSON.parse(readFileSync(join(run.folder, 'result.json'), 'utf8')) as Result;
  assert.equal(result.machine.node, process.version);
  assert.deepEqual(Object.keys(result.versions), ['trunkline', 'limit']);
  const [row] = result.rows;
  assert.equal(row?.name, 'pair-100');
  for (const system of ['trunkline', 'limit']) {
    assert.equal(row.results[system]?.length, 1);
    assert.ok(row.medians[system]! > 0, `${system} delivered something`);
  }
  assert.match(run.output(), /× limit/);
  assert.deepEqual(readdirSync(run.temporary), []);
});

test('bench: an interrupt ends it and all that it started', async (t) => {
  const run = start(t, ['--only', 'pair-16', '--peers', 'limit']);
  // its folder appears with the first server
  await new Promise<void>((resolve, reject) => {
    const look = setInterval(() => {
      if (readdirSync(run.temporary).length > 0) finish(resolve);
    }, 5);
    const finish = (then: () => void) => {
      clearInterval(look);
      then();
    };
    run.child.once('close', () => finish(() => reject(new Error(run.output()))));
  });
  run.child.kill('SIGINT');
  // the pipes close only when no process holds them any more
  assert.equal(await run.exited, 130, run.output());
  assert.deepEqual(readdirSync(run.temporary), []);
});

test('bench: wrong options are told', async (t) => {
  for (const [args, text] of [
    [['--rounds', '0'], /--rounds takes an integer from 1/],
    [['--peers', 'kafka'], /there is no kafka/],
    [['--only', 'nothing'], /no scenario has such a name/],
    [['--fast'], /--fast/],
  ] as const) {
    const run = start(t, args);
    assert.equal(await run.exited, 2);
    assert.match(run.output(), text);
  }
});
