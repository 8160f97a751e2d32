import { test } from 'node:test';
import { memoryBesideSlow, slowBesideFast } from './fixtures/slow-consumer.js';

test('a slow subscriber costs the fast ones nothing, and is told exactly what it missed', () => slowBesideFast(5000));

test('what a slow subscriber does not take costs the dispatcher no more than the bound', () =>
  memoryBesideSlow(60_000, 48 * 2 ** 20));
