import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseConfiguration } from '@trunkline/dispatcher';
import { expectLines, linesOf, linesOfServices, minimal, parse } from './helpers.js';

test('five different faults at once are five problems with their paths', () => {
  const faults = {
    listen: ['tcp://127.0.0.1:99999'],
    services: [
      { code: 1, probeAfter: 5 },
      { code: 1 },
      { code: 2, sendHandler: 'failver' },
      { code: 3, providrs: 'dynamic' },
    ],
  };
  expectLines(linesOf(faults), [
    /^\$\.listen\[0\]: the address "tcp:\/\/127\.0\.0\.1:99999" is invalid: the port "99999"/,
    /^\$\.services\[0\]\.probeAfter: must be a duration/,
    '$.services[1].code: the code 1 is also at $.services[0].code (line 1)',
    /^\$\.services\[2\]\.sendHandler: no send handler is named "failver".*did you mean "failover"\?$/,
    '$.services[3].providrs: unknown key; did you mean "providers"?',
  ]);
});

test('what must be there, and what may not', () => {
  expectLines(linesOf({}), ['$: the key "listen" is missing', '$: the key "services" is missing']);
  expectLines(linesOf([]), [/^\$: must be a Trunkline configuration/]);
  expectLines(linesOf(null), [/^\$: must be a Trunkline configuration.*null/]);
  expectLines(linesOf({ ...minimal, listen: [] }), ['$.listen: the list is empty']);
  expectLines(linesOf({ ...minimal, lsten: [] }), ['$.lsten: unknown key; did you mean "listen"?']);
  expectLines(linesOf({ ...minimal, unrelated: 1 }), ['$.unrelated: unknown key']);
  expectLines(linesOfServices({ name: 'x' }), ['$.services[0]: the key "code" is missing']);
  expectLines(linesOfServices('x'), [/^\$\.services\[0\]: must be an object/]);
});

test('service codes: 0 is the protocol, text ranges only, bounds of u32', () => {
  for (const code of [0, -1, 4294967296, 1.5, '0-5', '100', '0x64', '5 - 9', '5-', true, null, []]) {
    expectLines(linesOfServices({ code }), [
      /^\$\.services\[0\]\.code: must be a service code from 1 to 4294967295 \(0/,
    ]);
  }
  expectLines(linesOfServices({ code: '9-5' }), ['$.services[0].code: the range ends before it begins; "5-9"?']);
  expectLines(linesOfServices({ code: '1-4294967296' }), [/highest service code/]);
  const [all, one] = parse({ ...minimal, services: [{ code: '1-4294967295' }, { code: 4294967295 }] }).services;
  assert.deepEqual([all?.from, all?.to, one?.from, one?.to], [1, 4294967295, 4294967295, 4294967295]);
});

test('F94: the same code twice names both places, also as a range', () => {
  expectLines(linesOfServices({ code: 5 }, { code: 6 }, { code: 5 }, { code: 5 }), [
    '$.services[2].code: the code 5 is also at $.services[0].code (line 1)',
    '$.services[3].code: the code 5 is also at $.services[2].code (line 1)',
  ]);
  expectLines(linesOfServices({ code: '5-5' }, { code: 5 }), [/services\[1\]\.code: the code 5 is also/]);
  expectLines(linesOfServices({ code: '150-249' }, { code: '100-199' }), [
    '$.services[1].code: the codes 150-199 are, in a range of the same width, also at $.services[0].code (line 1)',
  ]);
  expectLines(linesOfServices({ code: '10-19' }, { code: '10-19' }), [/the codes 10-19 are/]);
});

test('ranges of different widths may overlap', () => {
  assert.deepEqual(linesOfServices({ code: '100-199' }, { code: '150-300' }, { code: '150-160' }, { code: 150 }), []);
});

test('durations: unit needed, zero only where it has a meaning (F54), no longer than a timer can wait', () => {
  for (const value of ['5', '5 s', '1.5s', '-1s', '5S', '', 5, 0, null, '05s']) {
    expectLines(linesOfServices({ code: 1, resendAfter: value }), [/resendAfter: must be a duration.*above zero/]);
    expectLines(linesOfServices({ code: 1, probeAfter: value }), [/probeAfter: must be a duration.*zero is "0s"/]);
  }
  for (const name of ['resendAfter', 'resendCap']) {
    expectLines(linesOfServices({ code: 1, [name]: '0s' }), [/must be a duration .*above zero, not "0s"/]);
  }
  for (const name of ['probeAfter', 'linger', 'resendCap']) {
    expectLines(linesOfServices({ code: 1, [name]: '2147483648ms' }), [/is too long; the most is 2147483647ms/]);
    assert.deepEqual(linesOfServices({ code: 1, [name]: '2147483647ms' }), []);
    expectLines(linesOfServices({ code: 1, [name]: '597h' }), [/too long/]);
  }
  expectLines(linesOf({ ...minimal, drain: '0s' }), [/^\$\.drain: must be a duration/]);
  expectLines(linesOf({ ...minimal, drain: '9999h' }), [/^\$\.drain: 9999h is too long/]);
  const [service] = parse({
    ...minimal,
    services: [{ code: 1, probeAfter: '0s', linger: '0ms', resendAfter: '1m', resendCap: '1h' }],
  }).services;
  assert.deepEqual(
    [service?.probeAfter, service?.linger, service?.resendAfter, service?.resendCap],
    [0, 0, 60_000, 3_600_000],
  );
});

test('sizes: bytes or with a unit, within bounds', () => {
  const session = (value: unknown): unknown => ({ ...minimal, session: { receiveWindow: value } });
  for (const value of ['4 MiB', '4MB', '0KiB', '', '1.5MiB', 0, -1, 1.5, null, []]) {
    expectLines(linesOf(session(value)), [/receiveWindow: must be a size/]);
  }
  expectLines(linesOf(session('2GiB')), ['$.session.receiveWindow: 2GiB is too large; the most is 2147483647 bytes']);
  expectLines(linesOf(session(2 ** 31)), [/receiveWindow: must be a size/]);
  expectLines(linesOf(session(1023)), [/1023 is too small; the least is 1024 bytes/]);
  for (const [value, bytes] of [
    [1024, 1024],
    ['1024B', 1024],
    ['64KiB', 65536],
    ['1GiB', 2 ** 30],
  ] as const) {
    assert.equal(parse(session(value)).session.receiveWindow, bytes);
  }
});

test('counts, rates and other plain options', () => {
  for (const value of ['3', 0, -3, 1.5, 1001]) {
    expectLines(linesOfServices({ code: 1, probeMisses: value }), [
      /probeMisses: must be a whole number from 1 to 1000/,
    ]);
  }
  expectLines(linesOfServices({ code: 1, latestRate: 0 }), [/latestRate: must be a number from 0.001/]);
  expectLines(linesOfServices({ code: 1, name: 'a\nb' }), [/name: must be a text of 1 to 128/]);
  expectLines(linesOfServices({ code: 1, kind: 'topic' }), [/kind: must be "live" or "queue", not "topic"/]);
  assert.deepEqual(linesOfServices({ code: 1, kind: 'live' }), []);
  expectLines(linesOf({ ...minimal, log: { level: 'wrn' } }), [/log\.level: must be one of.*did you mean "warn"/]);
  expectLines(linesOf({ ...minimal, session: { livenessFactor: 1 } }), [/livenessFactor: must be/]);
  expectLines(linesOf({ ...minimal, session: { heartbeat: '500h', livenessFactor: 3 } }), [/heartbeat times liveness/]);
});

test('tokens stay out of messages', () => {
  expectLines(linesOf({ ...minimal, tokens: [12345] }), ['$.tokens[0]: must be a text']);
  expectLines(linesOf({ ...minimal, tokens: ['a', 'b', 'a'] }), [
    '$.tokens[2]: the same value is already at $.tokens[0] (line 1)',
  ]);
});

test('keep in all its forms', () => {
  const keepOf = (keep: unknown): unknown => parse({ ...minimal, services: [{ code: 1, keep }] }).services[0]?.keep;
  assert.deepEqual(keepOf('none'), { mode: 'none' });
  assert.deepEqual(keepOf('last'), { mode: 'last' });
  assert.deepEqual(keepOf('lastPerKey'), { mode: 'lastPerKey', max: 10_000 });
  assert.deepEqual(keepOf({ lastPerKey: 5 }), { mode: 'lastPerKey', max: 5 });
  assert.deepEqual(keepOf({ ring: 7 }), { mode: 'ring', size: 7 });
  const problem = (keep: unknown): string[] => linesOfServices({ code: 1, keep });
  for (const keep of ['ring', {}, { ring: 1, lastPerKey: 1 }, 5, null, []]) {
    expectLines(problem(keep), [/keep: must be "none", "last"/]);
  }
  expectLines(problem({ ring: 0 }), ['$.services[0].keep.ring: must be a whole number from 1 to 1000000, not 0']);
  expectLines(problem({ rng: 5 }), ['$.services[0].keep.rng: unknown key; did you mean "ring"?']);
});

test('resendCap is not below resendAfter, wherever the two come from', () => {
  expectLines(linesOfServices({ code: 1, resendAfter: '5s', resendCap: '4s' }), [
    '$.services[0].resendCap: resendCap (4s) is below resendAfter (5s)',
  ]);
  expectLines(linesOf({ ...minimal, defaults: { resendAfter: '1m' }, services: [{ code: 1 }, { code: 2 }] }), [
    '$.defaults.resendAfter: resendCap (30s) is below resendAfter (1m)',
  ]);
  expectLines(linesOf({ ...minimal, defaults: { resendCap: '3s' }, services: [{ code: 1, resendAfter: '4s' }] }), [
    '$.services[0].resendAfter: resendCap (3s) is below resendAfter (4s)',
  ]);
  assert.deepEqual(linesOfServices({ code: 1, resendAfter: '30s' }), []);
});

test('params fit into a message', () => {
  expectLines(linesOfServices({ code: 1, limits: { maxParams: '64MiB' } }), [
    '$.services[0].limits.maxParams: limits.maxParams (64MiB) is not below session.maxMessage (64MiB)',
  ]);
  expectLines(linesOf({ ...minimal, session: { maxMessage: '32KiB' }, services: [{ code: 1 }] }), [
    '$.session.maxMessage: limits.maxParams (64KiB) is not below session.maxMessage (32KiB)',
  ]);
});

test('handlers are built in or configured; "block" only where it is listed', () => {
  for (const sendHandler of ['failover', 'roundRobin', 'hash', 'all', 'own']) {
    const modules = { sendHandlers: { own: { path: './own.mjs' } } };
    assert.deepEqual(linesOf({ ...minimal, modules, services: [{ code: 1, sendHandler }] }), []);
  }
  expectLines(linesOfServices({ code: 1, sendHandler: 'own' }), [
    /no send handler is named "own"; there are: failover/,
  ]);
  expectLines(linesOfServices({ code: 1, returnHandlers: ['broadcast', 'grop'] }), [
    /^\$\.services\[0\]\.returnHandlers\[1\]: no return handler is named "grop".*mean "group"/,
  ]);
  expectLines(linesOfServices({ code: 1, onProbe: 'log' }), [/onProbe: no module .*none is configured/]);
  expectLines(linesOf({ ...minimal, defaults: { sendHandler: 'x' } }), [/^\$\.defaults\.sendHandler: no send handler/]);
  expectLines(linesOfServices({ code: 1, returnHandlers: [] }), [/returnHandlers: the list is empty/]);
  expectLines(linesOfServices({ code: 1, overflow: ['blok'] }), [/overflow\[0\]: must be one of.*mean "block"/]);
  const services = [{ code: 1 }, { code: 2, overflow: ['block', 'latest'] }];
  assert.deepEqual(
    parse({ ...minimal, services }).services.map(({ overflow }) => overflow.includes('block')),
    [false, true],
  );
});

test('listen addresses are valid and distinct', () => {
  const listen = (...addresses: string[]): string[] => linesOf({ ...minimal, listen: addresses });
  const good = ['tcp://*:7400', 'tcp://0.0.0.0:7401', 'tcp://[::1]:7402', 'tcp://localhost:7403', 'ipc:///tmp/x.sock'];
  assert.deepEqual(listen(...good, 'tcp://127.0.0.1:0', 'tcp://127.0.0.1:*'), []);
  for (const bad of [
    '7400',
    'tcp:/x:1',
    'tcp://127.0.0.1',
    'tcp://:7400',
    'tcp://256.0.0.1:1',
    'tcp://a b:1',
    'udp://x:1',
  ]) {
    expectLines(listen(bad), [/^\$\.listen\[0\]: .*is invalid: /]);
  }
  for (const bad of [
    'tcp://x:70000',
    'tcp://x:-1',
    'tcp://x:1e3',
    'tcp://::1:5',
    'tcp://[x]:5',
    'ipc://',
    `ipc:///${'x'.repeat(107)}`,
  ]) {
    expectLines(listen(bad), [/^\$\.listen\[0\]: .*is invalid: /]);
  }
  for (const [one, two] of [
    ['tcp://127.0.0.1:7400', 'tcp://127.0.0.1:7400'],
    ['tcp://Host:7400', 'tcp://host:7400'],
    ['tcp://*:7400', 'tcp://10.0.0.1:7400'],
    ['tcp://localhost:7400', 'tcp://127.0.0.1:7400'],
    ['ipc:///tmp/a', 'ipc:///tmp/a'],
  ] as const) {
    expectLines(listen('tcp://x:1', one, two), [
      '$.listen[2]: the same address is listened at by $.listen[1] (line 1)',
    ]);
  }
});

test('provider addresses can be dialled and are not the dispatcher itself', () => {
  const dial = (address: unknown, listen = ['tcp://*:7400', 'ipc:///tmp/d.sock']): string[] =>
    linesOf({ listen, services: [{ code: 1, providers: [address] }] });
  assert.deepEqual(dial('tcp://127.0.0.1:7501'), []);
  assert.deepEqual(dial('tcp://10.0.0.9:7400'), []);
  for (const bad of ['tcp://*:7501', 'tcp://127.0.0.1:0', 'tcp://127.0.0.1:*']) {
    expectLines(dial(bad), [/^\$\.services\[0\]\.providers\[0\]: .*is invalid: /]);
  }
  for (const self of ['tcp://127.0.0.1:7400', 'tcp://0.0.0.0:7400', 'tcp://localhost:7400', 'ipc:///tmp/d.sock']) {
    expectLines(dial(self), [/providers\[0\]: the dispatcher would dial itself: it listens at \$\.listen\[[01]\]/]);
  }
  expectLines(dial(5), [/providers\[0\]: must be an address, or \{"address".*, not 5/]);
  expectLines(linesOfServices({ code: 1, providers: 'dynmic' }), [
    /providers: must be "dynamic".*did you mean "dynamic"/,
  ]);
  expectLines(linesOfServices({ code: 1, providers: [] }), [/providers: the list is empty/]);
  expectLines(linesOfServices({ code: 1, providers: ['tcp://x:1', 'tcp://x:1'] }), [/providers\[1\]: the same value/]);
});

test('modules: names, types 128..255, paths from the folder of the file', () => {
  const modules = {
    sendHandlers: { own: { path: './handlers/own.mjs', options: { weight: 2 } } },
    returnHandlers: { sample: { path: '/opt/sample.mjs' } },
    onProbe: { log: { path: '../log.mjs' } },
    messageTypes: { 130: { path: 'echo.mjs' } },
  };
  assert.deepEqual(parse({ ...minimal, modules }).modules, {
    sendHandlers: [{ name: 'own', path: '/etc/trunkline/handlers/own.mjs', options: { weight: 2 } }],
    returnHandlers: [{ name: 'sample', path: '/opt/sample.mjs', options: {} }],
    onProbe: [{ name: 'log', path: '/etc/log.mjs', options: {} }],
    messageTypes: [{ name: '130', type: 130, path: '/etc/trunkline/echo.mjs', options: {} }],
  });
  for (const type of ['127', '256', '0130', 'echo', '1.5e2']) {
    expectLines(linesOf({ ...minimal, modules: { messageTypes: { [type]: { path: 'x' } } } }), [
      /^\$\.modules\.messageTypes.*: the key must be a message type from "128" to "255"/,
    ]);
  }
  expectLines(linesOf({ ...minimal, modules: { sendHandlers: { all: { path: 'x' }, 'a b': {} } } }), [
    '$.modules.sendHandlers.all: "all" is built in; choose another name',
    /^\$\.modules\.sendHandlers\["a b"\]: the key must be a name/,
    '$.modules.sendHandlers["a b"]: the key "path" is missing',
  ]);
});

test('a module that is not there is told with its full path', () => {
  const text = JSON.stringify({ ...minimal, modules: { onProbe: { log: { path: './log.mjs' } } } });
  const load = (found: boolean): unknown =>
    parseConfiguration(new TextEncoder().encode(text), { baseDirectory: '/etc', moduleExists: () => found });
  assert.throws(() => load(false), /\$\.modules\.onProbe\.log\.path: module not found: \/etc\/log\.mjs/);
  assert.ok(load(true));
});
