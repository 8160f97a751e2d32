import { test } from 'node:test';
import { crowd } from './fixtures/crowds.js';

test('500 subscribers with 5 subscriptions each find back to a dispatcher that was killed (F30)', () => crowd(500));
