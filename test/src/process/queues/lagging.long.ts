import { test } from 'node:test';
import { readBehind } from './lagging.js';

const MIB = 1024 * 1024;

test('a reader far behind and one that takes nothing, through gigabytes of writes (F85)', async (context) => {
  context.diagnostic(await readBehind({ total: 3072 * MIB, kept: 96 * MIB, lag: 40 * MIB }));
});
