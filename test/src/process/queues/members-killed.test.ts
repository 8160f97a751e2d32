import { test } from 'node:test';
import { killMembers } from './members-killed.js';

test('members of three groups are killed in the middle of deliveries, the dispatcher killed and stopped (F74, F75, F80)', async (t) => {
  t.diagnostic(await killMembers(3));
});
