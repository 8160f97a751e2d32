import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Real } from './real.js';

test('F95: a byte order mark and CRLF load; other encodings are refused by their names, and the old table stays', async (t) => {
  const real = await Real.start(t, [{ code: 100 }]);
  const codes = () => [...real.dispatcher.registry.allServices()].map(({ definition }) => definition.from);
  const text = JSON.stringify({ listen: ['tcp://127.0.0.1:0'], services: [{ code: 200 }] }, undefined, 2);
  const windows = `\ufeff${text.replaceAll('\n', '\r\n')}\r\n`;
  const utf16 = Buffer.from(windows, 'utf16le');
  const wrong: Record<string, [Uint8Array, RegExp]> = {
    'UTF-16 LE': [utf16, /UTF-16.*UTF-8/],
    'UTF-16 BE': [Buffer.from(utf16).swap16(), /UTF-16.*UTF-8/],
    'UTF-16 without a mark': [utf16.subarray(2), /UTF-16.*|NUL/],
    'Latin-1': [Buffer.from(text.replace('200', '200, "name": "\u00e9"'), 'latin1'), /UTF-8: byte \d+ is E9/],
    'two marks': [Buffer.from(`\ufeff${windows}`), /./],
  };
  for (const [what, [bytes, says]] of Object.entries(wrong)) {
    real.write(bytes);
    assert.equal(await real.daemon.reload(), undefined, what);
    assert.match((real.logged.at(-1) as { error: string }).error, says, what);
    assert.deepEqual(codes(), [100]);
  }
  real.write(windows);
  assert.ok(await real.daemon.reload());
  assert.deepEqual(codes(), [200]);
  await real.daemon.stop();
  await real.run();
  assert.deepEqual(codes(), [200]);
});
