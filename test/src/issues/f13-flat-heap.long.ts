import { test } from 'node:test';
import { assertFlatHeap } from './flat-heap.js';

test('F13: 100,000 subscriptions with ever new params leave the heap as it was', () => assertFlatHeap(100_000));
