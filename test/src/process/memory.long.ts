import { test } from 'node:test';
import { cycles, flood } from './fixtures/memory.js';

test('a provider that never waits while the dispatcher stands still for 60 s (F38)', () => flood(60_000, false));

test('100,000 subscriptions come and go, and no table remembers them (F13)', () => cycles(100_000));
