import assert from 'node:assert/strict';
import { test } from 'node:test';
import { simulate } from './simulation.js';

test('2000 more seeds', async () => {
  for (let seed = 1001; seed <= 3000; seed++) {
    const { failure } = await simulate(seed);
    assert.equal(failure, undefined, `seed ${seed}: ${failure instanceof Error ? failure.stack : failure}`);
  }
});
