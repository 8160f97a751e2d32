import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canaries, runCanary } from './canaries.js';

// a checker that cannot fail proves nothing
for (const canary of canaries) {
  test(`a broken rule is found: ${canary.name}`, async () => {
    const { caught, failure } = await runCanary(canary);
    assert.ok(caught !== undefined, `not found by ${canary.checkers}, but: ${failure}`);
  });
}
