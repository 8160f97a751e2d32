import { test } from 'node:test';
import { killMembers } from './members-killed.js';

test('the same over 20 rounds (F74, F75, F80)', async (t) => {
  t.diagnostic(await killMembers(20));
});
