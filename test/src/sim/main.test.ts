import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { simulate } from './simulation.js';

const main = fileURLToPath(new URL('main.js', import.meta.url));
const run = (...args: string[]) => spawnSync(process.execPath, [main, ...args], { encoding: 'utf8' });

test('the command runs seeds and says how many failed', () => {
  const { status, stdout } = run('--seeds', '2', '--from', '5');
  assert.match(stdout, /^2 seeds, 0 failed$/m);
  assert.equal(status, 0);
});

test('the command replays one seed with its trace', () => {
  const { status, stdout } = run('--seed', '5', '--trace');
  assert.match(stdout, /converged/);
  assert.match(stdout, /^seed 5: \d+ events/m);
  assert.equal(status, 0);
});

test('the command refuses what is no number', () => {
  const { status, stderr } = run('--seeds', 'many');
  assert.match(stderr, /usage/);
  assert.equal(status, 2);
});

test('a seed with queues is the same alone and after others in one process', async () => {
  for (const seed of [6, 12]) {
    const { stdout } = run('--seed', String(seed));
    for (const before of [seed - 3, seed]) await simulate(before);
    const { events, messages, time, fingerprint } = await simulate(seed);
    const line = `seed ${seed}: ${events} events, ${messages} messages, ${time} ms of virtual time, trace ${fingerprint}`;
    assert.equal(stdout.trim(), line);
  }
});
