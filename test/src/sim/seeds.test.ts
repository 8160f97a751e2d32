import assert from 'node:assert/strict';
import { test } from 'node:test';
import { simulate } from './simulation.js';

/** `npm run sim -- --seeds N` runs as many as one likes. */
const SEEDS = 200;

test(`${SEEDS} seeds: the rules hold under faults, and everything converges`, async () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { failure, messages } = await simulate(seed);
    assert.equal(failure, undefined, `seed ${seed}: ${failure instanceof Error ? failure.stack : failure}`);
    assert.ok(messages > 0, `seed ${seed} delivered nothing`);
  }
});

test('a seed replays exactly, and another one does not', async () => {
  for (const seed of [3, 17]) {
    const lines: string[] = [];
    const first = await simulate(seed, (line) => lines.push(line));
    const again: string[] = [];
    const second = await simulate(seed, (line) => again.push(line));
    assert.deepEqual(again, lines);
    assert.deepEqual(second, first);
    const other = await simulate(seed + 1);
    assert.notEqual(other.fingerprint, first.fingerprint);
  }
});
