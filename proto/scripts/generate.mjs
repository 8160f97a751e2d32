// Compiles schemas/*.proto into static code under src/generated (not committed), if the schemas are newer.
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const schemas = readdirSync(join(root, 'schemas'))
  .filter((name) => name.endsWith('.proto'))
  .map((name) => join(root, 'schemas', name));
const output = join(root, 'src', 'generated', 'schema.js');
const distOutput = join(root, 'dist', 'generated', 'schema.js');
const types = join(root, 'src', 'generated', 'schema.d.ts');
const newest = Math.max(...schemas.map((file) => statSync(file).mtimeMs));

if (!existsSync(types) || !existsSync(distOutput) || statSync(types).mtimeMs < newest) {
  const cli = dirname(createRequire(import.meta.url).resolve('protobufjs-cli/package.json'));
  const run = (tool, ...args) =>
    execFileSync(process.execPath, [join(cli, 'bin', tool), ...args], { stdio: 'inherit' });
  mkdirSync(dirname(output), { recursive: true });
  mkdirSync(dirname(distOutput), { recursive: true });
  const options = ['-t', 'static-module', '-w', 'es6', '--es6', '--no-create', '--no-verify', '--no-delimited'];
  run('pbjs', ...options, '--no-convert', '--dependency', 'protobufjs/minimal.js', '-o', output, ...schemas);
  run('pbts', '-o', types, output);
  copyFileSync(output, distOutput);
}
