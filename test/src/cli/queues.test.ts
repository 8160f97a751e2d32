import assert from 'node:assert/strict';
import { test } from 'node:test';
import { trunkline } from '../support/command.js';
import { startDaemon } from '../support/daemon.js';

const services = [
  // a group may come when another one is done already
  { code: 4001, name: 'orders', kind: 'queue', retain: '1h' },
  { code: 4002, kind: 'queue', storage: 'memory', maxMessages: 2 },
];

const linesOf = (...lines: readonly string[]) => ({ input: lines.map((line) => `${line}\n`).join('') });
const numbers = (count: number) => Array.from({ length: count }, (_, index) => String(index + 1));

test('lines are published, shared by a group, seen, and acknowledged', async (context) => {
  const daemon = await startDaemon(context, { services, dataDirectory: 'data' });
  const where = ['--dispatcher', daemon.address];
  const run = async (...args: string[]) => {
    const command = trunkline(context, [...args, ...where]);
    const exit = await command.exited;
    return { exit, out: command.out, err: command.err, objects: command.objects };
  };
  const publish = trunkline(context, ['publish', '4001', ...where], linesOf(...numbers(1000)));
  assert.equal(await publish.exited, 0, publish.err);
  assert.match(publish.err, /1000 of 1000 messages published/);

  const other = trunkline(context, ['consume', '4001', '--group', 'h', '--count', '1000', ...where]);
  const group = ['consume', '4001', '--group', 'g', '--json', '--idle', '1s', '--window', '20', ...where];
  const consumers = [trunkline(context, group), trunkline(context, group)];
  for (const each of [...consumers, other]) assert.equal(await each.exited, 0, each.err);
  assert.equal(other.lines.length, 1000);
  const bodies = consumers.flatMap(({ objects }) => objects.map(({ body }) => Number(body)));
  assert.deepEqual(
    bodies.sort((one, two) => one - two),
    Array.from({ length: 1000 }, (_, index) => index + 1),
  );

  const listed = await run('queues');
  assert.match(listed.out, /4001 +orders +disk +1000 .*g\(1000, 0, 0, 0\)/);

  const input = linesOf('{"body": {"n": 1}, "tag": "t", "attrs": {"a": 1.5}}', '{"body": "text", "key": "own"}', '{}');
  const json = trunkline(context, ['publish', '4001', '--json', '--key', 'all', ...where], input);
  assert.equal(await json.exited, 0, json.err);
  const peeked = await run('peek', '4001', '--json', '--limit', '2', '--after', '1000');
  assert.deepEqual(
    peeked.objects.map(({ sequence, key, body, text }) => [sequence, key, body ?? text]),
    [
      [1001, 'all', { n: 1 }],
      [1002, 'own', 'text'],
    ],
  );
  assert.equal((await run('remove', '4001', '1002')).out, 'removed\n');
  assert.equal((await run('remove', '4001', '1002')).exit, 1);
  assert.match((await run('redeliver', '4001', '--group', 'g')).out, /0 messages/);
  assert.equal((await run('purge', '4001')).out, '1002 messages dropped\n');
  assert.equal((await run('delete', '4001', '--group', 'g')).exit, 0);
});

test('refusals and usage have their exit codes; queues can be declared and deleted', async (context) => {
  const daemon = await startDaemon(context, { services, dataDirectory: 'data' });
  const where = ['--dispatcher', daemon.address];
  const exit = (...args: string[]) => trunkline(context, [...args, ...where]).exited;
  const full = trunkline(context, ['publish', '4002', ...where], linesOf('a', 'b', 'c', 'd'));
  assert.equal(await full.exited, 3);
  assert.match(full.err, /QUEUE_FULL/);
  const broken = trunkline(context, ['publish', '4002', '--json', ...where], linesOf('{"body": '));
  assert.equal(await broken.exited, 2);
  assert.equal(await exit('consume', '4999'), 3);
  assert.equal(await exit('consume', '4001', '--start', 'now'), 2);
  assert.equal(await exit('redeliver', '4001'), 2);
  assert.equal(await exit('declare', '77', '--options', '{"maxAge": "1h"}'), 0);
  assert.equal(await exit('declare', '77', '--options', '{"maxAge": 5}'), 3);
  assert.equal(await exit('delete', '77'), 0);
  assert.equal(await exit('delete', '77'), 1);
  assert.equal(await exit('delete', '4001'), 3);
});

test('kill -9 of the dispatcher in the middle: everything is acknowledged by someone', async (context) => {
  const daemon = await startDaemon(context, { services, dataDirectory: 'data' });
  const where = ['--dispatcher', daemon.address];
  const group = ['consume', '4001', '--group', 'g', '--json', '--window', '50', ...where];
  const consumers = [trunkline(context, group), trunkline(context, group)];
  const args = ['publish', '4001', '--in-flight', '100', ...where];
  const publish = trunkline(context, args, linesOf(...numbers(5000)));
  const seen = () => consumers.reduce((sum, { objects }) => sum + objects.length, 0);
  await consumers[0]!.until(() => seen() > 300, 'something was consumed');
  await daemon.kill();
  await daemon.start();
  assert.equal(await publish.exited, 0, publish.err);
  const bodies = () => new Set(consumers.flatMap(({ objects }) => objects.map(({ body }) => Number(body))));
  await consumers[0]!.until(() => bodies().size === 5000, 'all were consumed');
  const firsts = consumers.flatMap(({ objects }) => objects).filter(({ deliveries }) => deliveries === 1);
  assert.equal(new Set(firsts.map(({ body }) => body)).size, firsts.length, 'one came again as if for the first time');
  for (const each of consumers) assert.equal(await each.kill('SIGTERM'), 0, each.err);
});
