import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Real } from './real.js';
import { assertWholeList, piped } from './whole-output.js';

test('F101: a list of 2,000 streams through a pipe is whole', (t) => assertWholeList(t, 2000));

test('F101: so is a long report of a configuration that does not start', async (t) => {
  const real = await Real.start(t, []);
  const count = 2000;
  const services = Array.from({ length: count }, (_, index) => ({
    code: index + 1,
    probeMisses: 0,
    name: 'x'.repeat(100),
  }));
  real.write({ listen: ['tcp://127.0.0.1:0'], services });
  for (const args of [
    ['check', real.file],
    ['dispatcher', '--config', real.file],
  ]) {
    const { out, status } = await piped(...args);
    assert.notEqual(status, 0);
    assert.equal(
      out
        .trimEnd()
        .split('\n')
        .filter((line) => /services\[\d+\]\.probeMisses/.test(line)).length,
      count,
      args[0],
    );
  }
});
