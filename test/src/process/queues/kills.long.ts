import { test } from 'node:test';
import { killUnderLoad } from './kills.js';

test('kill -9 of the dispatcher under load, 50 times: nothing confirmed is lost or doubled (F81)', async (t) => {
  t.diagnostic(await killUnderLoad(50));
});
