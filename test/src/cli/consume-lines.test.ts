import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from '@trunkline/publisher';
import { trunkline } from '../support/command.js';
import { startDaemon } from '../support/daemon.js';
import { until } from '../support/wait.js';

const services = [
  { code: 4001, kind: 'queue', storage: 'memory', retain: '1h' },
  { code: 4002, kind: 'queue', storage: 'memory', retain: '1h', ackTimeout: '300ms' },
];
const silent = { debug() {}, info() {}, warn() {}, error() {} };
const NOWHERE = 'tcp://127.0.0.1:1';
type Context = Parameters<typeof trunkline>[0];

async function bench(context: Context) {
  const daemon = await startDaemon(context, { services });
  const provider = await connect(daemon.address, { log: silent });
  context.after(() => provider.close());
  const start = (...args: readonly string[]) => trunkline(context, [...args, '--dispatcher', daemon.address]);
  const group = async (code: number) => {
    const command = start('queues', '--json');
    assert.equal(await command.exited, 0, command.err);
    const queues = JSON.parse(command.out) as { code: number; groups: { position: number; outstanding: number }[] }[];
    return queues.find((queue) => queue.code === code)!.groups[0];
  };
  return { daemon, provider, start, group };
}

const bodies = (count: number, size: number) =>
  Array.from({ length: count }, (_, index) => ({ body: `${index + 1} `.padEnd(size, 'x') }));

test('a message is acknowledged when it is written, not before: a reader that dies loses nothing', async (context) => {
  const { provider, start, group } = await bench(context);
  await provider.publishMany(4001, bodies(100, 20_000));
  const consumer = start('consume', '4001', '--group', 'g');
  consumer.child.stdout!.pause();
  await until(async () => ((await group(4001))?.outstanding ?? 0) > 0, 'they are out');
  let position = -1;
  // as far as a pipe goes that nobody reads
  await until(async () => {
    const before = position;
    position = (await group(4001))!.position;
    return position === before;
  }, 'it goes no further');
  assert.ok(position < 90, `${position} of 100 were acknowledged`);
  const killed = consumer.kill('SIGKILL');
  consumer.child.stdout!.resume();
  assert.equal(await killed, 'SIGKILL');
  assert.ok(consumer.lines.length >= position, `${position} were acknowledged, ${consumer.lines.length} written`);
  const next = start('consume', '4001', '--group', 'g', '--idle', '500ms');
  assert.equal(await next.exited, 0, next.err);
  assert.equal(next.lines.length, 100 - position);
});

test('a signal, and a reader that goes away, give back what was not written', async (context) => {
  const { provider, start, group } = await bench(context);
  await provider.publishMany(4001, bodies(100, 20_000));
  const left = start('consume', '4001', '--group', 'g');
  await left.until(() => left.lines.length > 0, 'it prints');
  left.child.stdout!.destroy();
  await provider.publishMany(4001, bodies(100, 20_000));
  assert.equal(await left.exited, 0, left.err);
  const stopped = start('consume', '4001', '--group', 'h');
  await stopped.until(() => stopped.lines.length > 0, 'it prints');
  assert.equal(await stopped.kill('SIGTERM'), 0, stopped.err);
  assert.equal((await group(4001))!.outstanding, 0);
  const rest = start('consume', '4001', '--group', 'h', '--idle', '500ms');
  assert.equal(await rest.exited, 0, rest.err);
  assert.equal(stopped.lines.length + rest.lines.length, 200, 'everything once');
});

test('--count ends although its last message was too late to be acknowledged', async (context) => {
  const { provider, start, group } = await bench(context);
  await provider.publishMany(4002, bodies(1, 300_000));
  const slow = start('consume', '4002', '--group', 'g', '--count', '1');
  slow.child.stdout!.pause();
  await until(async () => (await group(4002))?.outstanding === 1, 'it has the message');
  // it is printed, but not written, and comes again to the other one
  const other = start('consume', '4002', '--group', 'g', '--count', '1');
  assert.equal(await other.exited, 0, other.err);
  slow.child.stdout!.resume();
  assert.equal(await slow.exited, 0, slow.err);
});

test('--count ends although the dispatcher goes away with the last message', async (context) => {
  const { daemon, provider, start, group } = await bench(context);
  await provider.publishMany(4001, bodies(1, 300_000));
  const consumer = start('consume', '4001', '--group', 'g', '--count', '1');
  consumer.child.stdout!.pause();
  await until(async () => (await group(4001))?.outstanding === 1, 'it has the message');
  await daemon.kill();
  await consumer.until(() => consumer.err.includes('disconnected'), 'it has noticed');
  consumer.child.stdout!.resume();
  assert.equal(await consumer.exited, 0, consumer.err);
  assert.match(consumer.err, /message 1: /);
});

test('without a dispatcher it says so; --timeout ends it, --idle does not', async (context) => {
  const where = ['--dispatcher', NOWHERE];
  const patient = trunkline(context, ['consume', '4001', '--idle', '100ms', ...where]);
  const hasty = trunkline(context, ['consume', '4001', '--timeout', '1500ms', ...where]);
  assert.equal(await hasty.exited, 4, hasty.err);
  await patient.until(() => patient.err.includes(`waiting for a dispatcher at ${NOWHERE}`), 'it says that it waits');
  assert.equal(await patient.kill('SIGTERM'), 0, patient.err);
});
