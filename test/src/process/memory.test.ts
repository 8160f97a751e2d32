import { test } from 'node:test';
import { cycles, flood } from './fixtures/memory.js';

test('a provider that never waits while the dispatcher stands still keeps its memory, and nothing is lost (F38)', () =>
  flood(1000, false));

test('the same until the session is lost: what comes after it is whole (F38)', () => flood(1500, true));

test('20,000 subscriptions come and go, and no table remembers them (F13)', () => cycles(20_000));
