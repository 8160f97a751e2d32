import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, normalize } from 'node:path';
import { type TestContext, test } from 'node:test';
import { checkFiles, formatChecks, parseConfiguration, readConfiguration } from '@trunkline/dispatcher';
import { startDaemon } from '../support/local-daemon.js';
import { until } from '../support/wait.js';
import { filesUnder, read, root, rows, section } from './repository.js';

const readme = read('README.md');
const blocks = (language: string): string[] =>
  [...readme.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(([, code]) => code!);
const ADDRESS = 'tcp://127.0.0.1:7400';

/** Type-checks the snippets as an application would have them, strictly, and compiles them; returns their folder. */
async function compile(t: TestContext, snippets: readonly string[]): Promise<string> {
  // inside of the repository, where its packages are found
  const parent = join(root, 'test', 'dist', 'snippets');
  await mkdir(parent, { recursive: true });
  const folder = await mkdtemp(join(parent, 'readme-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const names = snippets.map((_, index) => join(folder, `snippet-${index}.mts`));
  for (const [index, name] of names.entries()) await writeFile(name, snippets[index]!);
  const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');
  const options = ['--ignoreConfig', '--strict', '--target', 'es2023', '--module', 'nodenext', '--types', 'node'];
  const child = spawn(process.execPath, [tsc, ...options, '--skipLibCheck', ...names], { cwd: root });
  let output = '';
  child.stdout.on('data', (data) => {
    output += data;
  });
  const [exit] = await once(child, 'close');
  assert.equal(exit, 0, output);
  return folder;
}

function run(t: TestContext, file: string): { child: ChildProcess; output: () => string } {
  const child = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (data) => {
      output += data;
    });
  }
  return { child, output: () => output };
}

test('every TypeScript snippet of the README compiles and runs against a dispatcher with its configuration', async (t) => {
  const configuration = JSON.parse(blocks('json')[0]!) as object;
  const { daemon } = await startDaemon(t, {
    ...configuration,
    listen: ['tcp://127.0.0.1:*'],
    log: { level: 'error' },
  });
  const address = daemon.dispatcher.addresses[0]!;
  const snippets = [...blocks('ts'), ...blocks('js')];
  assert.ok(snippets.length >= 3);
  for (const snippet of snippets) assert.ok(snippet.includes(ADDRESS), 'a snippet says where it connects to');
  const folder = await compile(
    t,
    snippets.map((snippet) => snippet.replaceAll(ADDRESS, address)),
  );
  const isProvider = (snippet: string) => snippet.includes('@trunkline/publisher');
  const programs = snippets.map((snippet, index) => ({ snippet, file: join(folder, `snippet-${index}.mjs`) }));

  const providers = programs.filter(({ snippet }) => isProvider(snippet)).map(({ file }) => run(t, file));
  const ready = () => [...daemon.dispatcher.peers.values()].filter(({ provider }) => provider !== undefined).length;
  await until(() => ready() === providers.length, 'the providers have offered');
  for (const { file, snippet } of programs.filter(({ snippet }) => !isProvider(snippet))) {
    const { child, output } = run(t, file);
    const [exit] = await once(child, 'close');
    assert.equal(exit, 0, `${snippet}\n${output()}`);
    assert.match(output(), /price/, snippet);
  }
  for (const { child, output } of providers) {
    assert.equal(child.exitCode, null, output());
    assert.equal(output(), '');
  }
  await until(() => daemon.dispatcher.registry.streamCount === 0, 'nothing is left of the snippets');
});

test('the configuration of the README is valid', () => {
  const [example, ...others] = blocks('json');
  const { configuration } = parseConfiguration(new TextEncoder().encode(example), { baseDirectory: root });
  assert.equal(configuration.services.length, 3);
  assert.deepEqual(others, []);
});

test('every configuration file that is shipped loads without a problem', async () => {
  const files = filesUnder('config', '.json').filter((path) => !path.endsWith('trunkline.schema.json'));
  assert.ok(files.length >= 3);
  assert.deepEqual(formatChecks(await checkFiles(files.map((file) => join(root, file)))), []);
  for (const file of files) {
    assert.ok((await readConfiguration(join(root, file))).configuration.services.length > 0, file);
  }
});

test('the exit codes of the README are those of the command line, and its commands exist', async () => {
  const cli = join(root, 'cli', 'bin', 'trunkline.js');
  const help = async (...args: string[]) => {
    const child = spawn(process.execPath, [cli, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    child.stdout.on('data', (data) => {
      output += data;
    });
    const [exit] = await once(child, 'close');
    assert.equal(exit, 0, args.join(' '));
    return output;
  };
  const text = await help('--help');
  const codes = [...text.matchAll(/^ {2}(\d) {2}/gm)].map(([, code]) => code);
  assert.deepEqual(
    rows(section(readme, '## Command line'), /^\d$/).map(([code]) => code),
    codes,
  );
  for (const [, command] of section(readme, '## Command line').matchAll(/npx trunkline ([a-z]+)/g)) {
    assert.match(text, new RegExp(`^ {2}${command} `, 'm'));
  }
});

test('what the documents link to exists, and so do the headings', () => {
  const anchors = (path: string) =>
    [...read(path).matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
      heading!
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} -]/gu, '')
        .replaceAll(' ', '-'),
    );
  const documents = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'proto/PROTOCOL.md', ...filesUnder('docs', '.md')];
  for (const document of documents) {
    for (const [, link] of read(document).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(link!)) continue;
      const [path, anchor] = link!.split('#');
      const target = path === '' ? document : normalize(join(dirname(document), path!)).replaceAll('\\', '/');
      assert.ok(existsSync(join(root, target)), `${document} links to ${link}`);
      if (anchor !== undefined) assert.ok(anchors(target).includes(anchor), `${document} links to ${link}`);
    }
  }
});
