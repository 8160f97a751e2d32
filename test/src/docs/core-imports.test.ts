import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filesUnder, read } from './repository.js';

/** What may do I/O, load Node or read a clock; everything else under these folders is core. */
const outside = [
  /^proto\/src\/(node|connect)\.ts$/,
  /^proto\/src\/transports\/(?!address\.ts)/,
  /^dispatcher\/src\/(config|transports|stores)\//,
  /^dispatcher\/src\/(daemon[^/]*|load-handlers|index)\.ts$/,
  /^publisher-sdk\/src\/(bind|connect|index)\.ts$/,
  /^subscriber-sdk\/src\/(connect|index)\.ts$/,
];
const packages = ['proto', 'dispatcher', 'publisher-sdk', 'subscriber-sdk'];
const sources = packages.flatMap((folder) => filesUnder(`${folder}/src`, '.ts'));
const core = sources.filter((path) => !outside.some((pattern) => pattern.test(path)));

/** What a file imports at run time or for its types. */
function importsOf(path: string): string[] {
  const text = withoutComments(read(path));
  const found = text.matchAll(
    /^(?:import|export)\b[^;'"]*?\bfrom\s+['"]([^'"]+)['"]|^import\s+['"]([^'"]+)['"]|\b(?:import|require)\(\s*['"]([^'"]+)['"]/gm,
  );
  return [...found].map(([, first, second, third]) => (first ?? second ?? third)!);
}

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/(^|\s)\/\/.*$/gm, '$1');
}

/** Module name without a path inside of it. */
function packageOf(name: string): string {
  const parts = name.split('/');
  return name.startsWith('@') ? parts.slice(0, 2).join('/') : parts[0]!;
}

function offenders(paths: readonly string[], allowed: (name: string) => boolean): string[] {
  return paths.flatMap((path) =>
    importsOf(path)
      .filter((name) => !name.startsWith('.') && !allowed(name))
      .map((name) => `${path} imports ${name}`),
  );
}

test('the list of what is not core names files that exist', () => {
  const missing = outside
    .filter((pattern) => !/transports|stores/.test(pattern.source))
    .filter((pattern) => {
      return !sources.some((path) => pattern.test(path));
    });
  assert.deepEqual(missing, []);
  for (const file of ['dispatcher/src/stream.ts', 'proto/src/session.ts', 'subscriber-sdk/src/client.ts']) {
    assert.ok(core.includes(file), file);
  }
});

test('the core imports no module of Node, no zeromq, no pino, and nothing that does', () => {
  const library = new Set(['@trunkline/proto', '@marcbachmann/cel-js', 'protobufjs']);
  assert.deepEqual(
    offenders(core, (name) => !/^@trunkline\/proto\/(zmq|node|connect)$/.test(name) && library.has(packageOf(name))),
    [],
  );
});

test('no file of the core imports one that is not', () => {
  const bad: string[] = [];
  for (const path of core) {
    for (const name of importsOf(path)) {
      if (!name.startsWith('.')) continue;
      const target = new URL(name, `file:///${path}`).pathname.slice(1).replace(/\.js$/, '.ts');
      if (outside.some((pattern) => pattern.test(target)) && !target.endsWith('/config/index.ts')) {
        bad.push(`${path} imports ${target}`);
      }
    }
  }
  assert.deepEqual(bad, []);
});

test('the core reads no clock, draws no random number and uses no global of Node', () => {
  const words =
    /\b(Date\.now|new Date\b|performance\.now|Math\.random|setTimeout|setInterval|setImmediate|process\.|Buffer\b)/;
  const bad = core.filter((path) => words.test(withoutComments(read(path))));
  assert.deepEqual(bad, []);
});

test('packages import one way: proto nothing of the others, the SDKs and the dispatcher only proto', () => {
  const own: Record<string, readonly string[]> = {
    proto: ['protobufjs', 'zeromq'],
    'publisher-sdk': ['@trunkline/proto'],
    'subscriber-sdk': ['@trunkline/proto'],
    dispatcher: ['@trunkline/proto', '@marcbachmann/cel-js', 'ajv', 'better-sqlite3', 'jsonc-parser', 'pino'],
  };
  for (const [folder, allowed] of Object.entries(own)) {
    const files = filesUnder(`${folder}/src`, '.ts');
    assert.ok(files.length > 0, folder);
    assert.deepEqual(
      offenders(files, (name) => name.startsWith('node:') || allowed.includes(packageOf(name))),
      [],
    );
    const manifest = JSON.parse(read(`${folder}/package.json`)) as { dependencies: Record<string, string> };
    assert.deepEqual(Object.keys(manifest.dependencies).sort(), [...allowed].sort(), `dependencies of ${folder}`);
  }
});
