import { test } from 'node:test';
import { killRounds } from './kill.js';

test('whatever was answered before kill -9 is there, whole and in order; 50 rounds (F81)', (context) =>
  killRounds(context, 50));
