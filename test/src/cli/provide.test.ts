import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { isAlive, type RunningCommand, trunkline } from '../support/command.js';
import { type DaemonProcess, startDaemon } from '../support/daemon.js';
import { until } from '../support/wait.js';

const configuration = {
  services: [{ code: '3000-3099', name: 'commands', probeAfter: '200ms', resendAfter: '200ms' }],
  session: { heartbeat: '200ms' },
};

const node = process.execPath;

async function provide(
  context: TestContext,
  daemon: DaemonProcess,
  code: string,
  command: readonly string[],
  options: readonly string[] = [],
): Promise<RunningCommand> {
  const running = trunkline(context, ['provide', code, '--connect', daemon.address, ...options, '--', ...command]);
  await running.until(() => running.out.includes('-- providing'), 'it provides');
  return running;
}

const subscribe = (context: TestContext, { address }: DaemonProcess, code: number, ...more: string[]): RunningCommand =>
  trunkline(context, ['sub', String(code), '--json', '--dispatcher', address, ...more]);

const bodies = ({ objects }: RunningCommand): unknown[] =>
  objects.filter((each) => each.event === undefined).map(({ body }) => body);

/** Counts up for ever, beginning with a line that tells the process id; each start is noted in a file. */
function counter(folder: string): { script: string[]; starts: () => string[] } {
  const file = join(folder, 'starts');
  writeFileSync(file, '');
  const source = `require('fs').appendFileSync(${JSON.stringify(file)}, process.pid + '\\n');
    console.log('pid ' + process.pid); let n = 0; setInterval(() => console.log(JSON.stringify({ n: n++ })), 20);`;
  return {
    script: [node, '-e', source],
    starts: () => readFileSync(file, 'utf8').trimEnd().split('\n').filter(Boolean),
  };
}

test('one command for three subscribers; it is gone after the last', async (context) => {
  const daemon = await startDaemon(context, configuration);
  const { script, starts } = counter(daemon.folder);
  const provider = await provide(context, daemon, '3001', script);
  const subs = [1, 2, 3].map(() => subscribe(context, daemon, 3001));
  for (const sub of subs) await sub.until(() => bodies(sub).length > 3, 'responses come');
  assert.equal(starts().length, 1);
  const pid = Number(starts()[0]);
  await subs[0]!.kill('SIGINT');
  await subs[1]!.kill('SIGKILL');
  const before = bodies(subs[2]!).length;
  await subs[2]!.until(() => bodies(subs[2]!).length > before + 3, 'it goes on for the last');
  assert.ok(isAlive(pid));
  await subs[2]!.kill('SIGTERM');
  await until(() => !isAlive(pid), 'the command has ended');
  assert.equal(starts().length, 1);
  assert.equal(await provider.kill('SIGTERM'), 0);
});

test('lines become responses, params arguments, the exit an END', async (context) => {
  const daemon = await startDaemon(context, configuration);
  const script = `
    console.log('{"key":"k","tag":"t","n":9007199254740993,"nested":{"a":1},"ok":true,"none":null}');
    console.log('[1,2]');
    console.log('{"broken":');
    console.log(JSON.stringify(process.argv.slice(1)));
    console.log(process.env.TRUNKLINE_PARAMS + ' ' + process.env.TRUNKLINE_CODE);
    process.stdout.write('no line feed', () => process.exit(7));`;
  await provide(context, daemon, '3000-3010', [node, '-e', script, '--', '{a}', '{{a}}', '{n}']);
  const params = '{"n":18446744073709551615,"a":"--x $(id); y"}';
  const sub = subscribe(context, daemon, 3002, '--params', params);
  assert.equal(await sub.exited, 7, sub.err);
  assert.match(sub.out, /"n":9007199254740993,"nested":\{"a":1\},"ok":true,"none":null\}\}\n/);
  const [first, ...rest] = sub.objects.filter(({ event }) => event === undefined);
  assert.deepEqual([first!.key, first!.tag], ['k', 't']);
  assert.deepEqual(Object.keys(first!.attrs as object).sort(), ['key', 'n', 'ok', 'tag']);
  assert.deepEqual(
    rest.map(({ body }) => body),
    [
      '[1,2]',
      '{"broken":',
      '["--x $(id); y","{a}","18446744073709551615"]',
      '{"a":"--x $(id); y","n":18446744073709551615} 3002',
      'no line feed',
    ],
  );
  const { event, code, exit } = sub.objects.at(-1)!;
  assert.deepEqual([event, code, exit], ['end', 'EXITED', 7]);
});

test('a missing param, a missing command and a line beyond the limit are told', async (context) => {
  const daemon = await startDaemon(context, {
    ...configuration,
    defaults: { limits: { maxParams: '1KiB' } },
    session: { heartbeat: '200ms', maxMessage: '64KiB' },
  });
  await provide(context, daemon, '3001', ['echo', '{name}']);
  await provide(context, daemon, '3002', [join(daemon.folder, 'nothing-here')]);
  const long = await provide(context, daemon, '3003', [
    node,
    '-e',
    'console.log("x"); console.log("y".repeat(100000))',
  ]);
  const [missing, absent, tooLong] = [3001, 3002, 3003].map((code) => subscribe(context, daemon, code));
  assert.equal(await missing!.exited, 3);
  assert.match(missing!.err, /REFUSED: the command needs the param "name"/);
  assert.equal(await absent!.exited, 3);
  assert.match(absent!.err, /REFUSED: cannot start .*nothing-here: there is no such command/);
  assert.equal(await tooLong!.exited, 1);
  assert.match(tooLong!.err, /MESSAGE_TOO_LARGE/);
  assert.deepEqual(bodies(tooLong!), ['x']);
  assert.equal(long.ended, undefined, 'it goes on providing');
  const right = subscribe(context, daemon, 3001, '--params', '{"name":-1.5}');
  const option = subscribe(context, daemon, 3001, '--params', '{"name":"--help"}');
  assert.equal(await right.exited, 0);
  assert.deepEqual(bodies(right), ['-1.5']);
  assert.equal(await option.exited, 3);
  assert.match(option.err, /REFUSED: the param for \{name\} may not begin with "-"/);
});

test('a command that ignores SIGTERM is killed with all that it started', async (context) => {
  const daemon = await startDaemon(context, configuration);
  const script = 'trap "" TERM; sleep 1000 & echo $!; echo $$; while :; do sleep 0.1; done';
  await provide(context, daemon, '3001', ['sh', '-c', script], ['--timeout-kill', '100ms']);
  const sub = subscribe(context, daemon, 3001);
  await sub.until(() => bodies(sub).length === 2, 'it tells its processes');
  const pids = bodies(sub).map(Number);
  assert.ok(pids.every(isAlive));
  await sub.kill('SIGTERM');
  await until(() => !pids.some(isAlive), 'they are gone');
});

test('provide killed with SIGKILL leaves no command behind; its successor brings every subscriber back', async (context) => {
  const daemon = await startDaemon(context, configuration);
  const { script, starts } = counter(daemon.folder);
  const first = await provide(context, daemon, '3001', script);
  const subs = [subscribe(context, daemon, 3001), subscribe(context, daemon, 3001, '--params', '{"other":1}')];
  for (const sub of subs) await sub.until(() => bodies(sub).length > 2, 'responses come');
  const old = starts().map(Number);
  await first.kill('SIGKILL');
  await until(() => !old.some(isAlive), 'the commands have ended');
  const states = (sub: RunningCommand) =>
    sub.objects.filter(({ event }) => event === 'status').map(({ state }) => state);
  for (const sub of subs) await sub.until(() => states(sub).at(-1) === 'stale', 'it is stale');
  await provide(context, daemon, '3001', script);
  for (const sub of subs) {
    const before = bodies(sub).length;
    await sub.until(() => bodies(sub).length > before + 2, 'responses come again');
    assert.deepEqual(states(sub), ['live', 'stale', 'live']);
    assert.equal(await sub.kill(), 0);
  }
  assert.equal(starts().length, 4);
});

test('a slow dispatcher holds up the command, and no line is left out', async (context) => {
  const daemon = await startDaemon(context, {
    services: [{ code: 3001, overflow: ['block'] }],
    session: { receiveWindow: '64KiB', outbox: '64KiB' },
  });
  const count = 20_000;
  const script = `const line = (n) => n < ${count} && process.stdout.write(n + ' ' + 'x'.repeat(200) + '\\n', () => line(n + 1)); line(0)`;
  await provide(context, daemon, '3001', [node, '-e', script]);
  const sub = subscribe(context, daemon, 3001, '--overflow', 'block');
  sub.child.stdout!.pause();
  await sub.until(() => sub.child.stdout!.readableLength > 0, 'output waits');
  sub.child.stdout!.resume();
  assert.equal(await sub.exited, 0, sub.err);
  const numbers = bodies(sub).map((body) => Number.parseInt(String(body), 10));
  assert.equal(numbers.length, count);
  assert.ok(numbers.every((number, index) => number === index));
});

test('a bound provider serves a dispatcher that dials it; several provide one code', async (context) => {
  const bound = trunkline(context, ['provide', '3001', '--bind', 'tcp://127.0.0.1:0', '--', 'echo', 'bound']);
  await bound.until(() => bound.out.includes('-- providing'), 'it is bound');
  const address = /at (tcp:\S+)/.exec(bound.out)![1]!;
  const daemon = await startDaemon(context, {
    services: [
      { code: 3001, providers: [address] },
      { code: 3002, sendHandler: 'roundRobin' },
    ],
  });
  const request = subscribe(context, daemon, 3001);
  assert.equal(await request.exited, 0, request.err);
  assert.deepEqual(bodies(request), ['bound']);

  await provide(context, daemon, '3002', ['echo', 'left']);
  await provide(context, daemon, '3002', ['echo', 'right']);
  const subs = [subscribe(context, daemon, 3002, '--params', '1'), subscribe(context, daemon, 3002, '--params', '2')];
  for (const sub of subs) assert.equal(await sub.exited, 0, sub.err);
  assert.deepEqual(subs.flatMap(bodies).sort(), ['left', 'right']);
});
