import { test } from 'node:test';
import { everyPage } from './damaged-files.js';

test('any page filled with NUL: refused, or the range that is gone is told', (context) => everyPage(context, 1));
