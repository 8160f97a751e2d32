import { test } from 'node:test';
import { restartDynamic, restartStatic } from './fixtures/provider-restarts.js';

test('a provider that dials in is killed and starts with an empty memory, 20 times (F1)', () =>
  restartDynamic(20, '300ms'));

test('the same at a static address, 20 times', () => restartStatic(20));
