import { test } from 'node:test';
import { memoryBesideSlow, slowBesideFast } from './fixtures/slow-consumer.js';

test('a slow subscriber costs the fast ones nothing, over 50,000 messages', () => slowBesideFast(50_000));

test('what a slow subscriber does not take costs no more than the bound, over 600 MB', () =>
  memoryBesideSlow(600_000, 48 * 2 ** 20));
