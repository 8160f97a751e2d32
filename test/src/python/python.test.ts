import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { Daemon } from '@trunkline/dispatcher';
import { connect, type Provider } from '@trunkline/publisher';
import { pino } from 'pino';
import { root } from '../docs/repository.js';
import { startDaemon } from '../support/local-daemon.js';
import { until } from '../support/wait.js';

const PYTHON = '/usr/bin/python3';
const PACKAGES = 'install the Debian packages python3-zmq, python3-protobuf and protobuf-compiler';

interface Run {
  readonly child: ChildProcess;
  readonly lines: string[];
  readonly errors: string[];
  readonly exit: Promise<number | null>;
}

function start(t: TestContext, command: string, args: readonly string[]): Run {
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' };
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
  t.after(() => child.kill('SIGKILL'));
  const lines: string[] = [];
  const errors: string[] = [];
  createInterface(child.stdout).on('line', (line) => lines.push(line));
  createInterface(child.stderr).on('line', (line) => errors.push(line));
  const exit = once(child, 'close').then(
    ([code]) => code as number | null,
    (error) => {
      errors.push(String(error));
      return 127;
    },
  );
  return { child, lines, errors, exit };
}

async function succeed(run: Run, what: string): Promise<void> {
  assert.equal(await run.exit, 0, `${what}\n${run.errors.join('\n')}`);
}

const python = (t: TestContext, script: string, ...args: string[]): Run =>
  start(t, PYTHON, [join(root, 'examples', 'python', script), ...args]);

/** Fails, never skips: without them nothing here would be tested. */
async function needPackages(t: TestContext): Promise<void> {
  await succeed(start(t, PYTHON, ['-c', 'import zmq, google.protobuf']), `no pyzmq or protobuf: ${PACKAGES}`);
  await succeed(start(t, 'protoc', ['--version']), `no protoc: ${PACKAGES}`);
}

const services = [
  { code: 1001, name: 'quotes', keep: 'last' },
  { code: 1002, name: 'large', overflow: ['block'] },
];
const configuration = {
  listen: ['tcp://127.0.0.1:*'],
  services,
  session: { heartbeat: '200ms' },
  log: { level: 'error' },
};

/** Offers `code`; each subscription responds as fast as it may, bodies given by number. */
async function provide(t: TestContext, address: string, code: number, body: (number: number) => unknown) {
  const provider: Provider = await connect(address);
  t.after(() => provider.close());
  provider.on('error', () => {});
  const params: unknown[] = [];
  provider.provide(code, (subscription) => {
    params.push(subscription.params);
    let number = 0;
    const timer = setInterval(() => {
      if (subscription.respond(body(number + 1), { key: 'ACME', attrs: { even: number % 2 === 1 } })) number++;
    }, 5);
    return () => clearInterval(timer);
  });
  return { provider, params };
}

test('the golden fixtures hold in Python', async (t) => {
  await needPackages(t);
  const run = python(t, 'fixtures.py');
  await succeed(run, 'fixtures');
  assert.match(run.lines.join('\n'), /^1\d\d fixtures, 0 failed$/);
});

test('a subscriber in Python gets ten responses and leaves nothing behind', async (t) => {
  await needPackages(t);
  const { daemon } = await startDaemon(t, configuration);
  const address = daemon.dispatcher.addresses[0]!;
  const { provider, params } = await provide(t, address, 1001, (number) => ({ number }));
  const run = python(
    t,
    'subscriber.py',
    '--address',
    address,
    '--code',
    '1001',
    '--params',
    '{"b": 1.0, "a": 9007199254740993}',
  );
  await succeed(run, 'subscriber');
  assert.deepEqual(
    run.lines,
    Array.from({ length: 10 }, (_, index) => `${index + 1}\tACME\t{"number":${index + 1}}`),
  );
  assert.deepEqual(params, [{ a: 9007199254740993n, b: 1 }]);
  await until(() => provider.subscriptions === 0, 'the provider was told to stop');
  await until(() => daemon.dispatcher.peers.size === 1, 'only the provider has a session');
  assert.equal(daemon.dispatcher.registry.streamCount, 0);
});

test('a filter of the Python subscriber is used, and one that does not compile is refused with its code', async (t) => {
  await needPackages(t);
  const { daemon } = await startDaemon(t, configuration);
  const address = daemon.dispatcher.addresses[0]!;
  await provide(t, address, 1001, (number) => ({ number }));
  const common = ['--address', address, '--code', '1001', '--count', '3', '--filter'];
  const even = python(t, 'subscriber.py', ...common, 'attrs.even && body.number > 2');
  await succeed(even, 'subscriber with a filter');
  assert.deepEqual(
    even.lines.map((line) => line.split('\t')[2]),
    ['{"number":4}', '{"number":6}', '{"number":8}'],
  );
  const bad = python(t, 'subscriber.py', ...common, 'attrs.even &&');
  assert.equal(await bad.exit, 1);
  assert.match(bad.errors.join('\n'), /FILTER_INVALID/);
});

test('credit from Python keeps more than a window flowing', async (t) => {
  await needPackages(t);
  const { daemon } = await startDaemon(t, configuration);
  const address = daemon.dispatcher.addresses[0]!;
  const text = 'x'.repeat(1024 * 1024);
  await provide(t, address, 1002, (number) => text + number);
  const run = python(t, 'subscriber.py', '--address', address, '--code', '1002', '--count', '12');
  await succeed(run, 'subscriber');
  assert.deepEqual(
    run.lines.map((line) => line.slice(-4)),
    Array.from({ length: 12 }, (_, index) => `xxx${index + 1}`.slice(-4)),
  );
  assert.equal(daemon.dispatcher.core.counters.gaps, 0);
});

test('a subscriber in Python comes back by itself after the dispatcher was restarted', async (t) => {
  await needPackages(t);
  const { daemon, file } = await startDaemon(t, configuration);
  const address = daemon.dispatcher.addresses[0]!;
  await writeFile(file, JSON.stringify({ ...configuration, listen: [address] }));
  await provide(t, address, 1001, (number) => ({ number }));
  const run = python(t, 'subscriber.py', '--address', address, '--code', '1001', '--count', '100');
  await until(() => run.lines.length >= 3, 'the first responses');
  await daemon.stop();
  const second = await Daemon.start({ file, log: pino({ enabled: false }) });
  t.after(() => second.stop());
  await succeed(run, 'subscriber');
  assert.equal(run.lines.length, 100);
  assert.match(run.errors.join('\n'), /session lost: SHUTTING_DOWN\n(.*\n)*gap: history lost/);
});
