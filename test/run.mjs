// Runs the built tests under node:test with coverage: `node test/run.mjs [--long] [folder or file …]`. `--no-table`: the
// coverage goes to coverage/coverage-summary.json only, so that the summary of the tests is the last that is printed.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '..');
const long = process.argv.includes('--long');
const wanted = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const ending = long ? '.long.js' : '.test.js';
/** Longest that the tests of one file may take, ms. */
const FILE_LIMIT = 900_000;
const files = readdirSync(join(here, 'dist'), { recursive: true })
  .filter((name) => name.endsWith(ending) && (wanted.length === 0 || wanted.some((word) => name.includes(word))))
  .sort()
  .map((name) => join(here, 'dist', name));
if (files.length === 0) {
  console.error('no test matches');
  process.exit(1);
}
const c8 = join(dirname(createRequire(import.meta.url).resolve('c8/package.json')), 'bin', 'c8.js');
const table = process.argv.includes('--no-table') ? 'json-summary' : 'text';
const coverage = [
  '--reporter',
  table,
  // the folders of the sources, as the source maps of what runs name them
  '--include',
  '*/src/**',
  '--exclude',
  'test/**',
  '--exclude',
  '**/generated/**',
  '--exclude-after-remap',
];
const runner = [
  process.execPath,
  '--enable-source-maps',
  '--test',
  '--test-reporter',
  'spec',
  '--test-concurrency',
  '2',
  // a file that hangs fails, and the others are run all the same
  ...(long ? [] : ['--test-timeout', String(FILE_LIMIT)]),
  ...files,
];
const command = wanted.length > 0 || long ? runner : [process.execPath, c8, ...coverage, ...runner];
const { status } = spawnSync(command[0], command.slice(1), { cwd: root, stdio: 'inherit' });
process.exit(status ?? 1);
