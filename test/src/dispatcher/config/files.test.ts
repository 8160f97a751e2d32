import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  ConfigurationError,
  checkFiles,
  configurationSchema,
  formatChecks,
  queueOptionDefaults,
  readConfiguration,
  serviceDefaults,
  sessionDefaults,
} from '@trunkline/dispatcher';
import { fuzzConfiguration } from '../../fuzz/configuration.js';
import { writeKeys } from '../../support/keys.js';
import { configFolder, minimal, parse, parseText, shippedBytes } from './helpers.js';

interface SchemaNode {
  description?: string;
  default?: unknown;
  type?: string;
  additionalProperties?: unknown;
  properties?: Record<string, SchemaNode>;
  anyOf?: SchemaNode[];
  items?: SchemaNode;
}

const schema = JSON.parse(new TextDecoder().decode(shippedBytes('schema/trunkline.schema.json'))) as SchemaNode;

function folder(context: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'trunkline-config-'));
  context.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

test('the published schema is the one that is checked (node config/schema/write.mjs writes it)', () => {
  assert.deepEqual(schema, JSON.parse(JSON.stringify(configurationSchema)));
});

test('every key in the schema is described, and unknown ones are refused', () => {
  let seen = 0;
  const visit = (node: SchemaNode, path: string): void => {
    for (const [key, child] of Object.entries(node.properties ?? {})) {
      assert.ok((child.description ?? '').length > 5, `${path}.${key} has no description`);
      seen++;
      visit(child, `${path}.${key}`);
    }
    if (node.type === 'object') assert.notEqual(node.additionalProperties ?? true, true, path);
    if (typeof node.additionalProperties === 'object') visit(node.additionalProperties as SchemaNode, `${path}.*`);
    for (const branch of node.anyOf ?? []) visit(branch, path);
    if (node.items !== undefined) visit(node.items, `${path}[]`);
  };
  visit(schema, '$');
  assert.ok(seen > 60, String(seen));
});

/** The `default`s below a schema, in the shape of a file. */
function defaultsIn(node: SchemaNode | undefined): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const [key, child] of Object.entries(node?.properties ?? {})) {
    if (child.default !== undefined) found[key] = child.default;
    else if (child.properties !== undefined) found[key] = defaultsIn(child);
  }
  return found;
}

test("the schema's defaults are the defaults in code", () => {
  const { $schema: _, services: __, dataDirectory: ___, curve: ____, ...root } = schema.properties ?? {};
  const spelledOut = defaultsIn({ properties: root });
  const service = defaultsIn(schema.properties?.services?.items);
  const ofQueues = Object.keys(queueOptionDefaults);
  const live = Object.fromEntries(Object.entries(service).filter(([name]) => !ofQueues.includes(name)));
  assert.deepEqual(service, { kind: 'live', ...serviceDefaults, ...queueOptionDefaults });
  assert.deepEqual(spelledOut.defaults, serviceDefaults);
  assert.deepEqual(spelledOut.session, sessionDefaults);
  const short = { ...minimal, services: [{ code: 1 }] };
  assert.deepEqual(parse({ ...short, ...spelledOut, services: [{ code: 1, ...live }] }), parse(short));
  assert.deepEqual(parse(short).services[0], {
    from: 1,
    to: 1,
    name: '1',
    providers: 'dynamic',
    sendHandler: 'failover',
    returnHandlers: ['broadcast', 'group', 'latest'],
    overflow: ['dropOldest', 'latest', 'disconnect'],
    resendAfter: 2000,
    resendCap: 30_000,
    probeAfter: 10_000,
    probeMisses: 3,
    requestWindow: 1024,
    linger: 0,
    keep: { mode: 'none' },
    latestRate: 10,
    limits: { maxStreams: 100_000, maxSubscribers: 1_000_000, maxParams: 65_536, maxKept: 16 * 2 ** 20 },
    onProbe: '',
  });
});

test('the documentation names every option with its default', () => {
  // columns are aligned for people
  const page = readFileSync(new URL('../docs/configuration.md', configFolder), 'utf8').replaceAll(/ +\|/g, ' |');
  const { limits, ...options } = serviceDefaults;
  const rows: [string, unknown][] = Object.entries(options);
  for (const [name, value] of Object.entries(limits)) rows.push([`limits.${name}`, value]);
  rows.push(...Object.entries(queueOptionDefaults));
  for (const [name, value] of Object.entries(sessionDefaults)) rows.push([`session.${name}`, value]);
  for (const [name, value] of rows) {
    const row = `| \`${name}\` | \`${JSON.stringify(value)}\` |`;
    assert.ok(page.includes(row), row);
  }
  for (const key of Object.keys(schema.properties ?? {})) assert.ok(page.includes(key), key);
  const example = /```json\n(\{\n {2}"\$schema"[\s\S]*?)```/.exec(page)?.[1] ?? '';
  assert.equal(parseText(example).services.length, 2);
});

test('defaults apply where a service says nothing, limits one by one', () => {
  const { services } = parse({
    ...minimal,
    defaults: { linger: '1s', keep: 'last', limits: { maxStreams: 7, maxParams: 100 } },
    services: [{ code: 1 }, { code: 2, linger: '0s', keep: 'none', limits: { maxParams: 200 } }],
  });
  const told = services.map(({ linger, keep, limits }) => [linger, keep.mode, limits.maxStreams, limits.maxParams]);
  assert.deepEqual(told, [
    [1000, 'last', 7, 100],
    [0, 'none', 7, 200],
  ]);
  assert.equal(services[1]?.limits.maxSubscribers, 1_000_000);
});

test('every shipped configuration loads', async () => {
  const names = readdirSync(configFolder).filter((name) => name.endsWith('.json'));
  assert.deepEqual(names.sort(), ['demo.json', 'example-full.json', 'example-static.json']);
  for (const name of names) {
    const { configuration } = await readConfiguration(fileURLToPath(new URL(name, configFolder)));
    assert.ok(configuration.services.length > 0, name);
  }
});

const securedExample = '../examples/secured/trunkline.json';

test('the example with keys loads beside keys, which are not shipped', async (context) => {
  const path = folder(context);
  const file = join(path, 'trunkline.json');
  copyFileSync(new URL(securedExample, configFolder), file);
  writeKeys(path);
  const { configuration } = await readConfiguration(file);
  assert.ok(configuration.curve !== undefined && Object.keys(configuration.serverKeys).length > 0);
});

test('the full example and the secured one use every option there is', () => {
  const used = new Set<string>();
  const collect = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, child] of Object.entries(value)) {
      used.add(key);
      collect(child);
    }
  };
  for (const name of ['example-full.json', securedExample]) {
    collect(JSON.parse(new TextDecoder().decode(shippedBytes(name))));
  }
  const known = new Set<string>();
  const visit = (node: SchemaNode): void => {
    for (const [key, child] of Object.entries(node.properties ?? {})) {
      known.add(key);
      visit(child);
    }
    for (const branch of node.anyOf ?? []) visit(branch);
    if (node.items !== undefined) visit(node.items);
  };
  visit(schema);
  assert.deepEqual(
    [...known].filter((key) => !used.has(key)),
    [],
  );
});

test('the demo has what the demo programs count on', () => {
  const { services, session, listen } = parseText(shippedBytes('demo.json'));
  assert.deepEqual(listen, [{ address: 'tcp://127.0.0.1:7400' }]);
  assert.equal(session.heartbeat, 1000);
  assert.ok(services.every(({ providers, probeAfter }) => providers === 'dynamic' && probeAfter === 2000));
});

test('F89: a file that is missing or cannot be read is named, with the reason', async (context) => {
  const path = folder(context);
  const missing = join(path, 'none.json');
  const checked = await checkFiles([missing, path, join(path, 'none', 'x.json')]);
  assert.deepEqual(formatChecks(checked), [
    `${missing}: $: there is no such file`,
    `${path}: $: this is a folder, not a file`,
    `${join(path, 'none', 'x.json')}: $: there is no such file`,
  ]);
  await assert.rejects(readConfiguration(missing), (error) => {
    assert.ok(error instanceof ConfigurationError);
    assert.equal(error.code, 'CONFIG_INVALID');
    assert.equal(error.file, missing);
    return error.message.includes(`${missing}: $: there is no such file`);
  });
});

test('checkFiles gives one line per problem, none for a good file', async (context) => {
  const path = folder(context);
  const good = join(path, 'good.json');
  const bad = join(path, 'bad.json');
  writeFileSync(good, JSON.stringify(minimal));
  writeFileSync(bad, '{\n  "listen": [],\n  "services": [{ "code": 0 }]\n}\n');
  const checked = await checkFiles([good, bad]);
  assert.deepEqual(checked[0], { file: good, problems: [] });
  assert.deepEqual(formatChecks(checked), [
    `${bad}:2:13: $.listen: the list is empty`,
    `${bad}:3:26: $.services[0].code: must be a service code from 1 to 4294967295 (0 is the protocol itself) or a range of codes such as "5000-5999", not 0`,
  ]);
});

test('modules are looked for beside the file', async (context) => {
  const path = folder(context);
  const file = join(path, 'modules.json');
  writeFileSync(join(path, 'there.mjs'), '');
  const modules = { onProbe: { there: { path: './there.mjs' }, away: { path: './away.mjs' } } };
  writeFileSync(file, JSON.stringify({ ...minimal, modules }));
  const [checked] = await checkFiles([file]);
  assert.deepEqual(
    checked?.problems.map(({ path: place, message }) => `${place}: ${message}`),
    [`$.modules.onProbe.away.path: module not found: ${join(path, 'away.mjs')}`],
  );
});

test('a message about very many problems stays readable', async (context) => {
  const file = join(folder(context), 'many.json');
  writeFileSync(file, JSON.stringify({ ...minimal, services: Array.from({ length: 500 }, () => ({ code: 0 })) }));
  await assert.rejects(readConfiguration(file), (error) => {
    assert.ok(error instanceof ConfigurationError);
    assert.equal(error.problems.length, 500);
    return error.message.split('\n').length === 22 && error.message.endsWith('… and 480 more');
  });
});

test('a large table loads, with its faults found', () => {
  const services = Array.from({ length: 20_000 }, (_, index) => ({ code: index + 1, name: `service ${index}` }));
  assert.equal(parse({ ...minimal, services }).services.length, 20_000);
});

test('fuzz: changed bytes give a configuration or a ConfigurationError, nothing else', () => {
  let state = 20_240_607;
  const random = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  fuzzConfiguration(random, 400);
});
