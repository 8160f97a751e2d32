import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { type RunOptions, trunkline } from '../support/command.js';
import { type DaemonProcess, startDaemon } from '../support/daemon.js';
import { until } from '../support/wait.js';

const services = [
  { code: 4001, kind: 'queue', storage: 'memory' },
  { code: 4002, kind: 'queue', storage: 'memory' },
  { code: 4003, kind: 'queue', storage: 'memory', maxMessages: 2 },
];
const NOWHERE = 'tcp://127.0.0.1:1';
const lines = (...texts: readonly string[]) => texts.map((text) => `${text}\n`).join('');

type Context = Parameters<typeof trunkline>[0];

function commands(context: Context, daemon: DaemonProcess) {
  const start = (args: readonly string[], options: RunOptions = {}) =>
    trunkline(context, [...args, '--dispatcher', daemon.address], options);
  const peek = async (code: number) => {
    const command = start(['peek', String(code), '--json', '--limit', '1000']);
    assert.equal(await command.exited, 0, command.err);
    return command.objects;
  };
  return { start, peek };
}

test('a bad line ends the reading with its number; the lines before it are stored', async (context) => {
  const daemon = await startDaemon(context, { services });
  const { start, peek } = commands(context, daemon);
  const good = Array.from({ length: 200 }, (_, index) => `{"body": ${index + 1}}`);
  for (const [bad, why] of [
    ['{"body": ', 'JSON'],
    ['[1]', 'not a JSON object'],
    ['{"body": 1, "atrs": {"a": 1}}', 'unknown field "atrs"'],
    ['{"body": {"base64": "%%%"}}', 'base64'],
    ['{"tag": 5}', 'META_INVALID'],
    ['{"attrs": {"a": [1]}}', 'META_INVALID'],
  ] as const) {
    const purge = start(['purge', '4001']);
    assert.equal(await purge.exited, 0, purge.err);
    const publish = start(['publish', '4001', '--json'], { input: lines(...good, bad, '{"body": "behind"}') });
    assert.equal(await publish.exited, 2, publish.err);
    assert.ok(publish.err.includes('line 201') && publish.err.includes(why), publish.err);
    assert.match(publish.err, /200 of 20\d messages published/);
    assert.deepEqual(
      (await peek(4001)).map(({ body }) => body),
      good.map((_, index) => index + 1),
    );
  }
});

test('lines are published byte by byte, integers are exact, and what consume prints can be published', async (context) => {
  const daemon = await startDaemon(context, { services });
  const { start, peek } = commands(context, daemon);
  const raw = Buffer.concat([Buffer.from('a\u2028b\rc\r\n'), Buffer.from([0xff, 0xfe, 0x0a]), Buffer.from('\nlast')]);
  const publish = start(['publish', '4001'], { input: raw });
  assert.equal(await publish.exited, 0, publish.err);
  assert.deepEqual(
    (await peek(4001)).map(({ text, hex }) => text ?? hex),
    ['a\u2028b\rc', 'fffe', '', 'last'],
  );
  const message =
    '{"body":{"z":12345678901234567890,"a":"x\u2028y"},"attrs":{"n":9007199254740993,"raw":{"base64":"AQI="}}}';
  const base64 = '{"body":{"base64":"//4="},"tag":"t","key":"k"}';
  const both = '{"body":{"base64":"//4=","more":1}}';
  const json = start(['publish', '4002', '--json'], { input: lines(message, base64, both) });
  assert.equal(await json.exited, 0, json.err);
  const read = () => start(['consume', '4002', '--start', 'earliest', '--json', '--count', '3']);
  const first = read();
  assert.equal(await first.exited, 0, first.err);
  assert.match(first.lines[0]!, /"attrs":\{"n":9007199254740993,"raw":\{"base64":"AQI="\}\}/);
  assert.ok(first.lines[0]!.endsWith('"body":{"z":12345678901234567890,"a":"x\u2028y"}}'), first.lines[0]);
  assert.ok(first.lines[1]!.endsWith('"tag":"t","key":"k","attrs":{},"body":{"base64":"//4="}}'), first.lines[1]);
  assert.ok(first.lines[2]!.endsWith('"body":{"base64":"//4=","more":1}}'), first.lines[2]);
  const again = start(['publish', '4002', '--json'], { input: lines(...first.lines) });
  assert.equal(await again.exited, 0, again.err);
  const second = start(['consume', '4002', '--start', 'after:3', '--json', '--count', '3']);
  assert.equal(await second.exited, 0, second.err);
  const without = (line: string) => line.replace(/"sequence":\d+/, '');
  assert.deepEqual(second.lines.map(without), first.lines.map(without));
});

test('a refusal names its line, also with --retry; what fits is stored', async (context) => {
  const daemon = await startDaemon(context, { services });
  const { start, peek } = commands(context, daemon);
  const full = start(['publish', '4003'], { input: lines('1', '2', '3') });
  assert.equal(await full.exited, 3);
  assert.match(full.err, /line 3: QUEUE_FULL/);
  const retry = start(['publish', '4003', '--retry'], { input: lines('4', '5') });
  await until(async () => (await peek(4003)).length === 2, 'the queue is seen');
  const purge = start(['purge', '4003']);
  assert.equal(await purge.exited, 0);
  assert.equal(await retry.exited, 0, retry.err);
  assert.deepEqual((await peek(4003)).map(({ text }) => text).sort(), ['4', '5']);
});

test('a signal waits for the confirmations that are under way and for nothing else', async (context) => {
  const daemon = await startDaemon(context, { services });
  const { start, peek } = commands(context, daemon);
  const publish = start(['publish', '4001'], { input: lines('1', '2'), open: true });
  await until(async () => (await peek(4001)).length === 2, 'both are there');
  assert.equal(await publish.kill('SIGTERM'), 0, publish.err);
  assert.match(publish.err, /2 of 2 messages published/);
  const alone = trunkline(context, ['publish', '4001', '--dispatcher', NOWHERE], { input: lines('1'), open: true });
  await alone.until(() => alone.err.includes('waiting for a dispatcher'), 'it says that it waits');
  assert.equal(await alone.kill('SIGINT'), 0, alone.err);
  assert.match(alone.err, /0 of 1 messages published/);
});

test('a dispatcher that will not have the publisher ends it, though the input says nothing', async (context) => {
  const daemon = await startDaemon(context, { services, tokens: ['secret'] });
  const { start } = commands(context, daemon);
  const publish = start(['publish', '4001'], { open: true });
  assert.equal(await publish.exited, 1, publish.err);
  assert.match(publish.err, /UNAUTHENTICATED/);
  const directory = trunkline(context, ['publish', '4001', '--dispatcher', NOWHERE], { open: true });
  directory.child.stdin!.destroy();
  assert.equal(await directory.exited, 0, directory.err);
});

test('input without an end waits for room: memory stays flat', async (context) => {
  const publish = trunkline(context, ['publish', '4001', '--dispatcher', NOWHERE, '--in-flight', '65536'], {
    open: true,
  });
  const chunk = Buffer.from(`${'x'.repeat(65_535)}\n`.repeat(16));
  const { stdin } = publish.child;
  let written = 0;
  let blocked = false;
  const bound = 300 * 1024 * 1024;
  while (!blocked && written < bound) {
    written += chunk.length;
    if (stdin!.write(chunk)) continue;
    const drained = new Promise<void>((resolve) => stdin!.once('drain', resolve));
    let over = false;
    drained.then(() => {
      over = true;
    });
    await until(() => over, 'it reads on', 2000).catch(() => {
      blocked = true;
    });
  }
  assert.ok(blocked, `${written} bytes were read`);
  assert.equal(publish.ended, undefined, publish.err);
  const rss = Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${publish.pid}/status`, 'utf8'))![1]) / 1024;
  assert.ok(rss < 250, `${rss} MiB`);
  assert.equal(await publish.kill('SIGTERM'), 0);
});
