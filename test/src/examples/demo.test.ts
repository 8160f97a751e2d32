import assert from 'node:assert/strict';
import { appendFileSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { connect } from '@trunkline/subscriber';
import { repository, runScript, trunkline } from '../support/command.js';
import { startDaemon, temporaryFolder } from '../support/daemon.js';
import { until } from '../support/wait.js';

const silent = { debug() {}, info() {}, warn() {}, error() {} };
const demo = (script: string) => join(repository, 'examples', 'demo', script);

/** The shipped configuration on a free port. */
function demoConfiguration(): object {
  const configuration = JSON.parse(readFileSync(join(repository, 'config', 'demo.json'), 'utf8')) as object;
  // relative to the configuration: beside it, so that no two of them meet
  return {
    ...configuration,
    $schema: join(repository, 'config', 'schema', 'trunkline.schema.json'),
    dataDirectory: 'data',
  };
}

/** Command lines of all processes that name the text. */
function processesNaming(text: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      } catch {
        return '';
      }
    })
    .filter((line) => line.includes(text));
}

async function writeDemoFile(context: TestContext): Promise<string> {
  const file = join(temporaryFolder(context), 'demo.json');
  writeFileSync(file, JSON.stringify({ ...demoConfiguration(), listen: ['tcp://127.0.0.1:0'] }));
  return file;
}

test('the demo shows its streams, ends by itself and leaves no process', async (context) => {
  const file = await writeDemoFile(context);
  const running = runScript(context, [demo('main.mjs'), '--seconds', '2', '--config', file]);
  await running.until(() => /^dispatcher at tcp/.test(running.out), 'it tells its address');
  const address = /^dispatcher at (\S+)/.exec(running.out)![1]!;
  const sub = trunkline(context, ['sub', '2003', '--params', '{"intervalMs":500}', '--count', '1', '--json'], {
    env: { TRUNKLINE_DISPATCHER: address },
  });
  assert.equal(await sub.exited, 0, sub.err);
  assert.equal(typeof (sub.objects.at(-1)!.attrs as { load1: unknown }).load1, 'number');
  assert.equal(await running.exited, 0, running.err);
  assert.equal(running.err, '');

  const last = running.out.slice(running.out.lastIndexOf('\ncode '));
  const rows = last.trim().split('\n').slice(1);
  const found = rows.map((row) => /^(\d+) .*\} +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\w+)$/.exec(row)!.slice(1));
  const shape = found.map(([code, subscribers, lanes, upstreams, , , state]) => [
    code,
    subscribers,
    lanes,
    upstreams,
    state,
  ]);
  shape.sort();
  assert.deepEqual(shape, [
    ['2001', '3', '3', '1', 'live'],
    ['2002', '2', '1', '1', 'live'],
    ['2003', '1', '1', '1', 'live'],
    ['2004', '1', '1', '1', 'live'],
    ['2005', '1', '1', '1', 'live'],
    ['2005', '1', '1', '1', 'live'],
    ['2101', '2', '1', '1', 'live'],
  ]);
  for (const [code, , , , messagesIn] of found) {
    if (code === '2002' || code === '2101') assert.notEqual(messagesIn, '0', last);
  }
  assert.deepEqual([...processesNaming(file), ...processesNaming(address)], []);
});

test('the demo says that the address is taken, and ends at a signal', async (context) => {
  const file = await writeDemoFile(context);
  const first = runScript(context, [demo('main.mjs'), '--config', file]);
  await first.until(() => first.out.includes('\ncode '), 'it shows a table');
  const address = /^dispatcher at (\S+)/.exec(first.out)![1]!;
  const taken = join(temporaryFolder(context), 'taken.json');
  writeFileSync(taken, JSON.stringify({ ...demoConfiguration(), listen: [address] }));
  const second = runScript(context, [demo('main.mjs'), '--config', taken, '--seconds', '1']);
  assert.equal(await second.exited, 1);
  assert.match(second.err, /ADDRESS_IN_USE.*\n.*Another demo or dispatcher runs there/);
  assert.equal(await first.kill('SIGINT'), 0);
  assert.deepEqual([...processesNaming(file), ...processesNaming(taken)], []);
});

test('the providers of the demo refuse what they cannot do', async (context) => {
  const { address, folder } = await startDaemon(context, demoConfiguration());
  const [inside, outside] = ['inside', 'outside'].map((name) => join(folder, name));
  mkdirSync(inside!);
  writeFileSync(join(folder, 'secret'), 'secret\n');
  symlinkSync(join(folder, 'secret'), join(inside!, 'link'));
  symlinkSync(inside!, outside!);
  writeFileSync(join(inside!, 'fine'), 'one\n');
  runScript(context, [demo('metrics-provider.mjs'), address]);
  runScript(context, [demo('log-provider.mjs'), address, inside!]);
  const client = await connect(address, { log: silent });
  context.after(() => client.close());
  const answer = (code: number, params: unknown) => {
    const subscription = client.subscribe(code, { params });
    subscription.on('error', () => {});
    return subscription.accepted().then(
      () => 'accepted',
      (error: Error) => error.message,
    );
  };
  for (const params of [undefined, {}, { intervalMs: 99 }, { intervalMs: 60_001 }, { intervalMs: '500' }, 500]) {
    assert.equal(await answer(2001, params), 'params must be {"intervalMs": 100..60000}');
  }
  assert.equal(await answer(2001, { intervalMs: 60_000 }), 'accepted');
  const refused = /there is no such file in the folders of this provider|params must be/;
  for (const path of [join(folder, 'secret'), join(inside!, 'link'), `${inside}/../secret`, inside, '/dev/zero', 7]) {
    assert.match(await answer(2101, { path }), refused, String(path));
  }
  assert.equal(await answer(2101, { path: join(inside!, 'fine') }), 'accepted');
  assert.equal(await answer(2101, { path: join(outside!, 'fine') }), 'accepted');
});

test('a log tail goes on through truncation and rotation', async (context) => {
  const { address, folder } = await startDaemon(context, demoConfiguration());
  const file = join(folder, 'a.log');
  writeFileSync(file, Array.from({ length: 20 }, (_, line) => `old ${line}\n`).join(''));
  runScript(context, [demo('log-provider.mjs'), address, folder]);
  const client = await connect(address, { log: silent });
  context.after(() => client.close());
  const lines: string[] = [];
  client.subscribe(2101, { params: { path: file } }, (message) => {
    lines.push(message.text());
  });
  const expect = async (...more: string[]) => {
    await until(() => lines.length >= more.length, `${more} came`);
    assert.deepEqual(lines.splice(0), more);
  };
  await expect(...Array.from({ length: 10 }, (_, line) => `old ${line + 10}`));
  appendFileSync(file, 'half');
  appendFileSync(file, ' line\n{"level":40}\n');
  await expect('half line', '{"level":40}');
  writeFileSync(file, 'short\n');
  await expect('short');
  appendFileSync(file, 'last of the old\n');
  renameSync(file, `${file}.1`);
  writeFileSync(file, 'first of the new\n');
  await expect('last of the old', 'first of the new');
});
