import { test } from 'node:test';
import { assertWholeList } from './whole-output.js';

test('F101: a list of 20,000 streams through a pipe is whole', (t) => assertWholeList(t, 20_000));
