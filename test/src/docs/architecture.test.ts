import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { serviceDefaults, sessionDefaults } from '@trunkline/dispatcher';
import { filesUnder, read, root, rows, section } from './repository.js';

const document = read('docs/architecture.md');
const namesIn = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name!);
const listed = rows(section(document, '## Folders and files'), /^`/).flatMap(([cell]) => namesIn(cell!));

test('what the list of files names exists', () => {
  assert.deepEqual(
    listed.filter((path) => !existsSync(join(root, path))),
    [],
  );
  assert.equal(new Set(listed).size, listed.length, 'each once');
});

test('every source file has its line in docs/architecture.md, or its folder has', () => {
  const packages = ['proto', 'dispatcher', 'publisher-sdk', 'subscriber-sdk', 'cli'];
  const sources = packages.flatMap((folder) => filesUnder(`${folder}/src`, '.ts'));
  const folders = listed.filter((path) => path.endsWith('/'));
  assert.deepEqual(
    sources.filter((path) => !listed.includes(path) && !folders.some((folder) => path.startsWith(folder))),
    [],
  );
});

test('the table of rules names every rule, and files and tests that exist', () => {
  const sources = filesUnder('dispatcher/src', '.ts').concat(filesUnder('proto/src', '.ts'));
  const tests = filesUnder('test/src', '.test.ts');
  const table = rows(section(document, '## Rules'), /^\d+ /);
  assert.deepEqual(
    table.map(([rule]) => Number.parseInt(rule!, 10)),
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14],
  );
  for (const [rule, where, checked] of table) {
    for (const name of namesIn(where!).filter((name) => name.endsWith('.ts'))) {
      const found = name.includes('/')
        ? existsSync(join(root, name))
        : sources.some((path) => path.endsWith(`/${name}`));
      assert.ok(found, `${rule}: ${name}`);
    }
    for (const name of namesIn(checked!)) {
      assert.ok(
        tests.some((path) => path.startsWith(`test/src/${name}`)),
        `${rule}: ${name}`,
      );
    }
  }
});

test('every option in the table of bounds exists', () => {
  const options = rows(section(document, '## What is bounded'), /./).flatMap(([, bound]) => namesIn(bound ?? ''));
  const session = Object.keys(sessionDefaults).map((name) => `session.${name}`);
  const service = Object.keys(serviceDefaults).map((name) => `services.${name}`);
  const limits = Object.keys(serviceDefaults.limits).map((name) => `services.limits.${name}`);
  const known = new Set([...session, ...service, ...limits, 'drain', 'maxBatchBytes']);
  assert.ok(options.length >= 10);
  assert.deepEqual(
    options.filter((name) => !known.has(name)),
    [],
  );
});
