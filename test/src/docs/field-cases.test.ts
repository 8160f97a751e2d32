import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filesUnder, read, rows } from './repository.js';

const table = rows(read('test/README.md'), /^F\d+$/);
const sources = [...filesUnder('test/src', '.test.ts'), ...filesUnder('test/src', '.long.ts')];
const casesOf = (source: string) => new Set(read(source).match(/\bF\d{1,3}\b/g) ?? []);

test('each case of the table is proved by the tests that it names', () => {
  assert.ok(table.length > 50);
  for (const [name, , tests] of table) {
    const named = [...tests!.matchAll(/`([^`]+)`/g)].map(([, path]) => path!);
    assert.ok(named.length > 0, `${name}: no test`);
    for (const path of named) {
      const source = `test/src/${path}.test.ts`;
      assert.ok(sources.includes(source), `${name}: there is no ${source}`);
      assert.ok(casesOf(source).has(name!), `${name}: ${source} does not say so`);
    }
  }
});

test('each case has one row', () => {
  const names = table.map(([name]) => name!);
  assert.equal(new Set(names).size, names.length, 'a case has two rows');
  const files = sources.filter((source) => source.startsWith('test/src/issues/'));
  const cases = files.flatMap((file) =>
    [.../f(\d+(?:-f\d+)*)-/.exec(file)![1]!.split('-f')].map((n) => `F${Number(n)}`),
  );
  for (const name of cases) assert.ok(names.includes(name), `${name} is not in test/README.md`);
});
