import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { trunkline } from '../support/command.js';
import { startDaemon, temporaryFolder } from '../support/daemon.js';

const commands = [
  'dispatcher',
  'check',
  'sub',
  'request',
  'provide',
  'keygen',
  'status',
  'services',
  'streams',
  'sessions',
  'providers',
  'kick',
  'reload',
];

/** Runs it to its end. */
async function run(context: TestContext, ...args: string[]): Promise<{ exit: unknown; out: string; err: string }> {
  const command = trunkline(context, args);
  const exit = await command.exited;
  return { exit, out: command.out, err: command.err };
}

test('every command has a help that names its options', async (context) => {
  const all = await run(context, '--help');
  assert.equal(all.exit, 0);
  assert.match(all.out, /Exit codes:\n {2}0 /);
  const helps = await Promise.all(commands.map((name) => run(context, name, '--help')));
  for (const [index, { exit, out, err }] of helps.entries()) {
    const name = commands[index]!;
    assert.ok(all.out.includes(`  ${name} `), name);
    assert.equal(exit, 0);
    assert.equal(err, '');
    assert.ok(out.startsWith(`trunkline ${name}`), out);
    assert.match(out, /\n {2}--help/);
  }
  assert.deepEqual(await run(context, 'help', 'sub'), helps[commands.indexOf('sub')]);
});

test('a wrong command line is told with what was probably meant, exit code 2', async (context) => {
  const cases: [string[], RegExp][] = [
    [['sbu'], /unknown command sbu; did you mean sub\?/],
    [['stat'], /unknown command stat; did you mean status\?/],
    [['sub', '1001', '--filtre', 'x'], /unknown option --filtre; did you mean --filter\?/],
    [['sub'], /sub needs CODE/],
    [['sub', 'abc'], /service code must be an integer 1\.\.4294967295, not "abc"/],
    [['sub', '0'], /service code must be an integer/],
    [['sub', '1', '2'], /does not know what to do with "2"/],
    [['sub', '1', '--count'], /--count needs a value/],
    [['sub', '1', '--json=yes'], /--json takes no value/],
    [['sub', '1', '--rate', '1', '--rate', '2'], /--rate is given twice/],
    [['sub', '1', '--params', '{"a":'], /--params: params are not JSON/],
    [['sub', '1', '--start', 'after:x'], /--start must be kept, live or after:SEQUENCE/],
    [['sub', '1', '--overflow', 'shrug'], /overflow must be one of/],
    [['sub', '1', '--timeout', '2'], /--timeout must be a duration such as 500ms/],
    [['sub', '1', '--dispatcher', 'tcp://127.0.0.1:70000'], /ADDRESS_INVALID/],
    [['provide', '1'], /needs a command after --/],
    [['provide', '1', 'date'], /put -- before the command/],
    [['provide', '9-1', '--', 'date'], /ends before it begins/],
    [['dispatcher'], /needs --config FILE/],
  ];
  const results = await Promise.all(cases.map(([args]) => run(context, ...args)));
  for (const [index, { exit, out, err }] of results.entries()) {
    const [args, expected] = cases[index]!;
    assert.match(err, expected, args.join(' '));
    assert.equal(exit, 2, args.join(' '));
    assert.equal(out, '');
  }
  assert.equal((await run(context)).exit, 2);
});

test('check tells all problems of all files at once, and dispatcher the same', async (context) => {
  const folder = temporaryFolder(context);
  const [good, bad, missing] = ['good.json', 'bad.json', 'missing.json'].map((name) => join(folder, name));
  writeFileSync(good!, '{"listen":["tcp://127.0.0.1:0"],"services":[{"code":1}]}');
  writeFileSync(
    bad!,
    `{
  "listen": ["tcp://127.0.0.1:70000"],
  "services": [
    { "code": 1, "probeAfter": 5 },
    { "code": 1 },
    { "code": 2, "sendHandler": "failsover" },
    { "code": 3, "kepe": "last" }
  ]
}`,
  );
  const right = await run(context, 'check', good!);
  assert.deepEqual(right, { exit: 0, out: '', err: '' });
  const wrong = await run(context, 'check', good!, bad!, missing!);
  assert.equal(wrong.exit, 2);
  const lines = wrong.out.trimEnd().split('\n');
  assert.equal(lines.length, 6, wrong.out);
  for (const line of lines.slice(0, 5)) assert.match(line, /^.*bad\.json:\d+:\d+: \$\.[^:]+: ./);
  assert.match(wrong.out, /bad\.json:2:14: \$\.listen\[0\]: /);
  assert.match(lines[5]!, /missing\.json: \$: there is no such file/);

  const started = await run(context, 'dispatcher', '--config', bad!);
  assert.equal(started.exit, 2);
  assert.equal(started.err, `${lines.slice(0, 5).join('\n')}\n`);
  const json = await run(context, 'check', '--json', bad!);
  assert.equal(JSON.parse(json.out)[0].problems.length, 5);
});

test('an address in use is told, exit code 1, and the first dispatcher goes on', async (context) => {
  const daemon = await startDaemon(context, { services: [{ code: 1 }] });
  const second = await run(context, 'dispatcher', '--config', daemon.file);
  assert.equal(second.exit, 1);
  assert.match(second.err, /trunkline: ADDRESS_IN_USE: .*tcp:\/\/127\.0\.0\.1/);
  assert.equal((await run(context, 'status', '--dispatcher', daemon.address)).exit, 0);
  assert.equal(await daemon.stop(), 0);
});
