import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { connect } from '@trunkline/publisher';
import { RunningCommand, trunkline } from '../support/command.js';
import { startDaemon } from '../support/daemon.js';

const silent = { debug() {}, info() {}, warn() {}, error() {} };

test('sub prints exact JSON, one object a line, and ends after --count', async (context) => {
  const daemon = await startDaemon(context, { services: [{ code: 1001, keep: { ring: 10 } }] });
  const provider = await connect(daemon.address, { log: silent });
  context.after(() => provider.close());
  provider.provide(1001, (subscription) => {
    subscription.respond('{"n": 12345678901234567890,\n"x": 1}', { json: true, tag: 't', key: 'k' });
    subscription.respond('text', { attrs: { big: 9007199254740993n, none: Number.NaN, raw: Uint8Array.of(1, 2) } });
    subscription.respond(Uint8Array.of(0xff, 0xfe));
    subscription.respond('\u001b[2Jred');
  });
  const where = ['--dispatcher', daemon.address];
  const json = trunkline(context, ['sub', '1001', '--json', '--count', '3', ...where]);
  assert.equal(await json.exited, 0, json.err);
  assert.equal(json.lines.length, 4, json.out);
  assert.match(
    json.lines[0]!,
    /^\{"event":"status","state":"live","reason":"","generation":\d+,"sequence":\d+,"epoch":"[0-9a-f]+"\}$/,
  );
  const [first, second, third] = json.lines
    .slice(1)
    .map((line) =>
      line.replace(/"snapshot":(true|false)/, '"snapshot":0').replace(/"generation":\d+/, '"generation":1'),
    );
  assert.equal(
    first,
    '{"code":1001,"sequence":1,"generation":1,"snapshot":0,"tag":"t","key":"k","attrs":{},' +
      '"body":{"n": 12345678901234567890, "x": 1}}',
  );
  assert.equal(
    second,
    '{"code":1001,"sequence":2,"generation":1,"snapshot":0,"tag":"","key":"",' +
      '"attrs":{"big":9007199254740993,"none":"NaN","raw":{"base64":"AQI="}},"body":"text"}',
  );
  assert.equal(JSON.parse(third!).body.base64, '//4=');

  const people = trunkline(context, ['sub', '1001', '--count', '4', ...where]);
  assert.equal(await people.exited, 0, people.err);
  assert.match(people.out, /\n4 .*\\x1b\[2Jred\n/);

  const filtered = trunkline(context, ['sub', '1001', '--filter', 'tag == "t"', '--count', '1', '--json', ...where]);
  assert.equal(await filtered.exited, 0, filtered.err);
  assert.equal(filtered.objects.at(-1)!.tag, 't');
});

test('refusals, timeouts and a signal have their exit codes', async (context) => {
  const daemon = await startDaemon(context, { services: [{ code: 1 }, { code: 2 }] });
  const where = ['--dispatcher', daemon.address];
  const provider = await connect(daemon.address, { log: silent });
  context.after(() => provider.close());
  provider.provide(1, (subscription) =>
    subscription.params === undefined ? undefined : { echo: subscription.params },
  );

  const unknown = trunkline(context, ['sub', '9', '--json', ...where]);
  const filter = trunkline(context, ['sub', '1', '--filter', 'tag ==', ...where]);
  const nobody = trunkline(context, ['sub', '2', '--timeout', '200ms', ...where]);
  const unanswered = trunkline(context, ['request', '1', '--timeout', '200ms', ...where]);
  const refused = trunkline(context, ['request', '9', ...where]);
  const answered = trunkline(context, ['request', '1', '--params', '{"b":[1,2],"a":9}', ...where]);
  const admin = trunkline(context, ['streams', '--timeout', '300ms', '--dispatcher', 'tcp://127.0.0.1:9']);

  assert.equal(await unknown.exited, 3);
  assert.match(unknown.err, /^trunkline: UNKNOWN_SERVICE: /);
  assert.deepEqual(
    unknown.objects.map(({ event, code }) => [event, code]),
    [
      ['error', 'UNKNOWN_SERVICE'],
      ['end', 'UNKNOWN_SERVICE'],
    ],
  );
  assert.equal(await filter.exited, 3);
  assert.match(filter.err, /FILTER_INVALID/);
  assert.equal(await nobody.exited, 4);
  assert.match(nobody.err, /TIMEOUT/);
  assert.equal(await unanswered.exited, 4);
  assert.equal(await refused.exited, 3);
  assert.match(refused.err, /UNKNOWN_SERVICE/);
  assert.equal(await answered.exited, 0, answered.err);
  assert.match(answered.out, /^\{"echo":\{"a":9,"b":\[1,2\]\}\}\n$/);
  assert.equal(await admin.exited, 4);
  assert.match(admin.err, /no dispatcher answers at tcp:\/\/127\.0\.0\.1:9/);

  const open = trunkline(context, ['sub', '1', '--json', ...where]);
  await open.until(() => open.objects[0]?.state === 'live', 'it is live');
  assert.equal(await open.kill('SIGINT'), 0);
  assert.equal(open.err, '');
});

test('sub waits for a dispatcher that is not there, and outlives its restart', async (context) => {
  const daemon = await startDaemon(context, { services: [{ code: 1, keep: 'last' }] });
  await daemon.kill();
  const sub = trunkline(context, ['sub', '1', '--json', '--dispatcher', daemon.address]);
  await sub.until(() => sub.objects[0]?.state === 'disconnected', 'it says that there is no dispatcher');
  await daemon.start();
  const provider = await connect(daemon.address, { log: silent });
  context.after(() => provider.close());
  provider.provide(1, (subscription) => {
    subscription.respond('here');
  });
  const bodies = () => sub.objects.filter(({ body }) => body === 'here').length;
  await sub.until(() => bodies() === 1, 'the first response came');
  await daemon.kill();
  await daemon.start();
  await sub.until(() => bodies() === 2, 'it was asked again');
  const states = sub.objects.filter(({ event }) => event === 'status').map(({ state }) => state);
  assert.deepEqual([...new Set(states)].sort(), ['disconnected', 'live']);
  assert.equal(await sub.kill('SIGTERM'), 0);
});

test('20,000 entries reach a pipe whole, and a reader that goes away is no error', async (context) => {
  const services = Array.from({ length: 20_000 }, (_, index) => ({ code: index + 1, name: `service ${index + 1}` }));
  const daemon = await startDaemon(context, { services });
  const list = trunkline(context, ['services', '--json', '--dispatcher', daemon.address]);
  assert.equal(await list.exited, 0, list.err);
  const entries = JSON.parse(list.out) as { from: number; name: string }[];
  assert.equal(entries.length, 20_000);
  assert.equal(entries.at(-1)!.name, 'service 20000');

  // a slow reader, and one that leaves: through a shell, as people do it
  const binary = new URL('../../../cli/bin/trunkline.js', import.meta.url).pathname;
  const shell = (script: string): RunningCommand => {
    const child = spawn('bash', ['-o', 'pipefail', '-c', script, 'bash', process.execPath, binary, daemon.address]);
    return new RunningCommand(child);
  };
  const whole = shell('"$1" "$2" services --json --dispatcher "$3" | cat | wc -l');
  const head = shell('"$1" "$2" services --json --dispatcher "$3" | head -n 1');
  assert.equal(await whole.exited, 0, whole.err);
  assert.equal(whole.out.trim(), '20000');
  assert.equal(await head.exited, 0, head.err);
  assert.equal(head.err, '');
});

test('what a dispatcher shows, and kick', async (context) => {
  const daemon = await startDaemon(context, { services: [{ code: 1, name: 'one' }] });
  const where = ['--dispatcher', daemon.address];
  const provider = await connect(daemon.address, { name: 'source', log: silent });
  context.after(() => provider.close());
  provider.provide(1, (subscription) => {
    subscription.respond('x');
  });
  const sub = trunkline(context, ['sub', '1', '--params', '{"a":1}', '--json', ...where]);
  await sub.until(() => sub.objects.length === 2, 'a response came');

  const show = async (name: string): Promise<Record<string, unknown>[]> => {
    const json = trunkline(context, [name, '--json', ...where]);
    const people = trunkline(context, [name, ...where]);
    assert.equal(await json.exited, 0, json.err);
    assert.equal(await people.exited, 0, people.err);
    assert.ok(people.lines.length > 1, people.out);
    return [JSON.parse(json.out)].flat();
  };
  const [streams, providers, services, sessions, status] = await Promise.all(
    ['streams', 'providers', 'services', 'sessions', 'status'].map(show),
  );
  assert.equal(streams!.length, 1);
  const { code, service, params, status: state, subscribers, lanes, upstreams } = streams![0]!;
  assert.deepEqual([code, service, params, state, subscribers, lanes], [1, 'one', '{"a":1}', 'live', 1, 1]);
  assert.deepEqual(upstreams, [{ provider: 'source', state: 'live' }]);
  assert.deepEqual([providers!.length, providers![0]!.name, providers![0]!.up], [1, 'source', true]);
  assert.equal(services![0]!.subscribers, 1);
  assert.deepEqual(status![0]!.addresses, [daemon.address]);
  const session = sessions!.find(({ name }) => String(name).startsWith('trunkline-sub-'))!;

  const kick = trunkline(context, ['kick', String(session.id), ...where]);
  assert.equal(await kick.exited, 0, kick.err);
  assert.equal(await sub.exited, 1);
  assert.match(sub.err, /KICKED/);
  const again = trunkline(context, ['kick', String(session.id), ...where]);
  assert.equal(await again.exited, 1);
  assert.match(again.err, /there is no session/);
});

test('reload applies a changed file and tells what changed, or what is wrong with it', async (context) => {
  const daemon = await startDaemon(context, { services: [{ code: 1, name: 'one' }] });
  const reload = async (...more: string[]) => {
    const command = trunkline(context, ['reload', '--dispatcher', daemon.address, ...more]);
    return { exit: await command.exited, out: command.out, err: command.err };
  };
  // the port that it was given instead of 0 stands in the file since
  const restart = 'needs a restart: listen\n';
  assert.deepEqual(await reload(), { exit: 0, out: restart, err: '' });
  const services = [
    { code: 1, name: 'one', probeAfter: '7s' },
    { code: 2, name: 'two' },
  ];
  daemon.configure({ services, drain: '3s' });
  const { exit, out } = await reload();
  assert.deepEqual([exit, out], [0, `added: two\nchanged: one (probeAfter)\napplied: drain\n${restart}`]);
  daemon.configure({ services: [...services, { code: 2, name: 'again' }] });
  const refused = await reload();
  assert.equal(refused.exit, 3);
  assert.match(refused.err, /CONFIG_INVALID: .*services\[2\]/s);
  daemon.configure({ services: [{ code: 1, name: 'one' }], drain: '3s' });
  const { exit: done, out: report } = await reload('--json');
  assert.equal(done, 0);
  const changed = [{ name: 'one', fields: ['probeAfter'] }];
  const told = { unchanged: false, added: [], removed: ['two'], changed, live: [], restart: ['listen'] };
  assert.deepEqual(JSON.parse(report), { ...told, ended: 0, moved: 0 });
});
