import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  changedFields,
  diffConfigurations,
  diffTables,
  ForwardingTable,
  parseConfiguration,
  type ServiceDefinition,
} from '@trunkline/dispatcher';
import { TrunklineError } from '@trunkline/proto';
import fc from 'fast-check';
import { minimal, parse, parseText } from './helpers.js';

const [template] = parse({ ...minimal, services: [{ code: 1 }] }).services as [ServiceDefinition];
const range = (from: number, to: number): ServiceDefinition => ({ ...template, from, to, name: `${from}-${to}` });
const servicesOf = (...services: unknown[]): readonly ServiceDefinition[] => parse({ ...minimal, services }).services;

/** The rule in its plainest form. */
function naiveFind(services: readonly ServiceDefinition[], code: number): ServiceDefinition | undefined {
  let best: ServiceDefinition | undefined;
  for (const service of services) {
    if (code < service.from || code > service.to) continue;
    if (best === undefined || service.to - service.from < best.to - best.from) best = service;
  }
  return best;
}

const aCode = fc.oneof(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 0xffff_ffff - 20, max: 0xffff_ffff }));
const aRange = fc.tuple(aCode, aCode).map(([a, b]) => range(Math.min(a, b), Math.max(a, b)));

test('property: the table finds what a search through all ranges finds', () => {
  fc.assert(
    fc.property(fc.array(aRange, { maxLength: 12 }), fc.array(aCode, { maxLength: 20 }), (services, codes) => {
      const table = new ForwardingTable(services);
      const borders = services.flatMap(({ from, to }) => [from - 1, from, to, to + 1]);
      for (const code of [...codes, ...borders]) assert.equal(table.find(code), naiveFind(services, code), `${code}`);
    }),
    { numRuns: 300 },
  );
});

test('find answers undefined for what is no service code', () => {
  const table = new ForwardingTable([range(1, 0xffff_ffff)]);
  for (const code of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 0x1_0000_0000]) {
    assert.equal(table.find(code), undefined, String(code));
  }
  assert.equal(table.find(0xffff_ffff)?.to, 0xffff_ffff);
  assert.equal(new ForwardingTable([]).find(1), undefined);
});

test('a table refuses ranges that are none', () => {
  for (const [from, to] of [
    [0, 5],
    [5, 4],
    [1, 2 ** 32],
    [1.5, 2],
    [Number.NaN, 2],
  ] as const) {
    assert.throws(
      () => new ForwardingTable([range(from, to)]),
      (error) => error instanceof TrunklineError && error.code === 'CONFIG_INVALID',
    );
  }
});

test('a table keeps its services although the list it came from changes', () => {
  const services = [range(1, 1)];
  const table = new ForwardingTable(services);
  services.push(range(2, 2));
  assert.equal(table.services.length, 1);
  assert.equal(table.find(2), undefined);
});

test('diffTables names what was added, removed and changed, field by field', () => {
  const before = servicesOf({ code: 1 }, { code: 2, keep: 'last' }, { code: '10-19' }, { code: 4 });
  const after = servicesOf(
    { code: '10-19', linger: '5s', limits: { maxStreams: 5 } },
    { code: 1 },
    { code: 2, keep: { ring: 5 } },
    { code: 3 },
  );
  const { added, removed, changed } = diffTables(new ForwardingTable(before), new ForwardingTable(after));
  assert.deepEqual(
    added.map(({ name }) => name),
    ['3'],
  );
  assert.deepEqual(
    removed.map(({ name }) => name),
    ['4'],
  );
  assert.deepEqual(
    changed.map((change) => [change.before.name, change.after.name, change.fields]),
    [
      ['10-19', '10-19', ['linger', 'limits']],
      ['2', '2', ['keep']],
    ],
  );
});

test('F92: the same content in another order or layout, or with its defaults spelled out, is no change', () => {
  const one = parseText(`{"listen":["tcp://*:1","tcp://*:2"],
    "services":[{"code":1,"keep":{"ring":5},"limits":{"maxStreams":5,"maxParams":"1KiB"}},{"code":2}],
    "modules":{"onProbe":{"log":{"path":"x","options":{"a":1,"b":[1,{"c":2,"d":3}]}}}}}`);
  const other = parseText(`{"modules" : {"onProbe":{"log":{"options":{"b":[1,{"d":3,"c":2}],"a":1},"path":"./x"}}},
    "services":[{"code":2,"probeMisses":3},
      {"limits":{"maxParams":1024,"maxStreams":5},"keep":{"ring":5},"code":1}],
    "listen":["tcp://*:2","tcp://*:1"], "log":{"level":"info"}, "drain":"5000ms"}`);
  const diff = diffConfigurations(one, other);
  assert.deepEqual(diff, { services: { added: [], removed: [], changed: [] }, live: [], restart: [], unchanged: true });
});

test('the order of providers, handlers and overflow policies is a change', () => {
  const [a, b] = servicesOf(
    { code: 1, name: 'x', providers: ['tcp://a:1', 'tcp://b:1'], overflow: ['latest', 'block'] },
    { code: 2, name: 'x', providers: ['tcp://b:1', 'tcp://a:1'], overflow: ['block', 'latest'] },
  ) as [ServiceDefinition, ServiceDefinition];
  assert.deepEqual(changedFields(a, b), ['from', 'to', 'providers', 'overflow']);
  assert.deepEqual(changedFields(a, { ...a }), []);
});

test('diffConfigurations tells what a reload applies from what needs a restart', () => {
  const base = { ...minimal, modules: { sendHandlers: { a: { path: 'a' }, b: { path: 'b' } } } };
  const changed = {
    listen: ['tcp://127.0.0.1:7401'],
    services: [{ code: 1 }],
    modules: { sendHandlers: { a: { path: 'a', options: 1 } }, messageTypes: { 130: { path: 'x' } } },
    session: { heartbeat: '1s', maxMessage: '1MiB' },
    tokens: ['t'],
    drain: '1s',
    log: { level: 'debug' },
  };
  const diff = diffConfigurations(parse(base), parse(changed));
  assert.equal(diff.unchanged, false);
  assert.deepEqual(diff.live, ['tokens', 'drain', 'log.level']);
  assert.deepEqual(diff.restart, [
    'listen',
    'session.heartbeat',
    'session.maxMessageBytes',
    'modules.sendHandlers.a',
    'modules.sendHandlers.b',
    'modules.messageTypes.130',
  ]);
  assert.equal(diff.services.added.length, 1);
});

test('a single difference anywhere is seen', () => {
  const base = parse(minimal);
  const bytes = (value: unknown): Uint8Array =>
    new TextEncoder().encode(JSON.stringify({ ...minimal, ...(value as object) }));
  for (const change of [{ drain: '6s' }, { tokens: ['x'] }, { listen: ['tcp://*:1'] }, { services: [{ code: 9 }] }]) {
    const { configuration } = parseConfiguration(bytes(change), { baseDirectory: '/' });
    assert.equal(diffConfigurations(base, configuration).unchanged, false, JSON.stringify(change));
  }
});
