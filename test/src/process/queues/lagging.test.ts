import { test } from 'node:test';
import { readBehind } from './lagging.js';

const MIB = 1024 * 1024;

test('a reader far behind and one that takes nothing, while the queue is written and trimmed (F85)', async (context) => {
  context.diagnostic(await readBehind({ total: 128 * MIB, kept: 32 * MIB, lag: 12 * MIB }));
});
