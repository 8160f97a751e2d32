import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('main.js', import.meta.url));
const run = (...args: string[]) => spawnSync(process.execPath, [main, ...args], { encoding: 'utf8', timeout: 60_000 });

test('the fuzz command runs every fuzzer from the seed given', () => {
  const { status, stdout } = run('--seconds', '0.01', '--seed', '7');
  assert.equal(status, 0);
  assert.match(stdout, /^seed 7, 0.01 s: header, batch, payload, configuration/);
  assert.match(stdout, /\d+ rounds/);
});

test('the fuzz command refuses options that make no sense', () => {
  for (const args of [
    ['--seconds', '0'],
    ['--seconds', 'x'],
    ['--seed', '-1'],
    ['--seed', '1.5'],
  ])
    assert.equal(run(...args).status, 2, args.join(' '));
});
