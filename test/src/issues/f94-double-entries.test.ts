import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Real } from './real.js';

const head = '{\n"listen": ["tcp://127.0.0.1:0"],\n"services": [\n';
const bad: Record<string, [text: string, ...says: RegExp[]]> = {
  'the same code twice': [
    `${head}{"code": 100},\n{"code": 101},\n{"code": 100}\n]}`,
    /services\[2\]/,
    /services\[0\]/,
    /line 4/,
    /:6:/,
  ],
  'a code and the range of it alone': [
    `${head}{"code": 100},\n{"code": "100-100"}\n]}`,
    /services\[1\]/,
    /services\[0\]/,
  ],
  'two ranges of one width that overlap': [`${head}{"code": "1-10"},\n{"code": "5-14"}\n]}`, /5-10/, /services\[0\]/],
  'hex text': [`${head}{"code": "0x64"}\n]}`, /services\[0\]\.code/],
  'a decimal text': [`${head}{"code": "100"}\n]}`, /services\[0\]\.code/],
  'a fraction': [`${head}{"code": 100.5}\n]}`, /services\[0\]\.code/],
  'bare hex': [`${head}{"code": 0x64}\n]}`, /0x64/, /:4:/],
  'a leading zero': [`${head}{"code": 0100}\n]}`, /:4:/],
  'a leading plus': [`${head}{"code": +100}\n]}`, /:4:/],
  'a trailing comma': [`${head}{"code": 100},\n]}`, /trailing comma/, /:4:/],
  'a key twice': [`${head}{"code": 100,\n"name": "a", "code": 101}\n]}`, /same key/, /line 4/, /:5:/],
  'a key twice in other escapes': [`${head}{"code": 100, "c\\u006fde": 101}\n]}`, /same key/],
  'a top key twice': [`${head}],\n"services": []}`, /same key/, /line 3/, /:5:/],
  'something after the end': [`${head}]}\n{}`, /end/, /:5:/],
  'a comment': [`${head}// all of them\n]}`, /comment/, /:4:/],
  'single quotes': [`${head}{'code': 100}\n]}`, /:4:/],
  NaN: [`${head}{"code": 100, "latestRate": NaN}\n]}`, /NaN/, /:4:/],
};

test('F94: double entries and what is no JSON are refused with their places, at the start and at a reload', async (t) => {
  const real = await Real.start(t, [{ code: 7 }]);
  for (const [what, [text, ...says]] of Object.entries(bad)) {
    real.write(text);
    assert.equal(await real.daemon.reload(), undefined, what);
    const { error } = real.logged.at(-1) as { error: string };
    for (const each of says) assert.match(error, each, what);
    await assert.rejects(real.run(), { message: error }, what);
  }
  assert.deepEqual(
    [...real.dispatcher.registry.allServices()].map(({ definition }) => definition.from),
    [7],
  );
});
