import { test } from 'node:test';
import { assertFlatHeap } from './flat-heap.js';

test('F13: 20,000 subscriptions with ever new params leave the heap as it was', () => assertFlatHeap(20_000));
