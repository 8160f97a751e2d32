// A live stream that is recorded into a queue: a durable group that was away misses nothing that the dispatcher got.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../../support/wait.js';
import { World } from '../fixtures/world.js';
import { QueueBook } from './book.js';
import type { Got } from './consumer-process.js';
import { Journal, startMember } from './journal.js';
import { CODE, Member } from './members.js';

const LIVE = 1;
const params = { symbol: 'ACME' };

/** Numbers of the provider's responses, in the order of their sequences. */
function numbersOf(got: readonly Got[]): number[] {
  const bodies = new Map(got.map(({ sequence, body }) => [sequence, (JSON.parse(body) as { n: number }).n]));
  return [...bodies].sort(([one], [other]) => one - other).map(([, n]) => n);
}

const counted = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

async function recordedWorld() {
  const world = await World.start({
    services: [
      { code: LIVE, record: { queue: CODE, params: [params] } },
      { code: CODE, kind: 'queue', storage: 'disk' },
    ],
    dataDirectory: 'data',
  });
  const client = await world.client();
  const queue = async () => (await client.queues.list())[0]!;
  return { world, client, queue, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
}

test('a consumer that is killed finds everything that was recorded meanwhile, though nobody subscribes', async () => {
  await using recorded = await recordedWorld();
  const { world, queue } = recorded;
  const provider = await world.provider({ [LIVE]: { every: 2 } });
  const journal = new Journal(world);
  const first = await startMember(world, journal, 'g', 10);
  await until(() => journal.count('g', 'acked') > 50, 'it is followed');
  await first.kill();
  const { last } = await queue();
  await until(async () => (await queue()).last > last + 100, 'the stream goes on without anybody');
  const wanted = (await queue()).last;
  await startMember(world, journal, 'g', 10);
  const got = () => journal.lines().filter((words) => words[2] === 'got');
  await until(() => got().some((words) => Number(words[3]) >= wanted), 'the group has caught up');
  const book = new QueueBook();
  journal.enter(book);
  assert.deepEqual(book.faults, []);
  const bodies = new Map(got().map((words) => [Number(words[3]), (JSON.parse(words[6]!) as { n: number }).n]));
  const numbers = [...bodies].sort(([one], [other]) => one - other);
  // the first responses of a stream are the first messages of its queue: nothing is missing, nothing stands twice
  assert.deepEqual(
    numbers,
    counted(numbers.length).map((n) => [n, n]),
  );
  const { started } = await provider.report();
  assert.deepEqual(started, { [`${LIVE}:${JSON.stringify(params)}`]: 1 }, 'one upstream');
});

test('a dispatcher that is killed asks for the stream again by itself, and keeps what it had recorded', async () => {
  await using recorded = await recordedWorld();
  const { world, queue } = recorded;
  const provider = await world.provider({ [LIVE]: { every: 2 } });
  await until(async () => (await queue()).last > 100, 'it is recorded');
  const { last } = await queue();
  await world.restartDispatcher();
  await until(async () => (await queue()).last > last + 100, 'it is recorded again');
  const wanted = (await queue()).last;
  const member = await Member.start(world, { acks: true });
  await until(async () => (await member.got()).some(({ sequence }) => sequence >= wanted), 'the group has it all');
  const got = (await member.got()).filter(({ sequence }) => sequence <= wanted);
  assert.deepEqual(
    got.map(({ sequence }) => sequence),
    counted(wanted),
  );
  const numbers = numbersOf(got);
  assert.deepEqual(numbers.slice(0, last), counted(last), 'what was recorded before is whole');
  // what was on its way when the dispatcher was killed is nobody's any more; nothing stands twice or out of order
  for (let index = 1; index < numbers.length; index++) {
    assert.ok(numbers[index]! > numbers[index - 1]!, `${numbers[index]} after ${numbers[index - 1]}`);
  }
  const { started } = await provider.report();
  assert.deepEqual(started, { [`${LIVE}:${JSON.stringify(params)}`]: 2 });
});
