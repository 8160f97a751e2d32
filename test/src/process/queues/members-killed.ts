import assert from 'node:assert/strict';
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Provider } from '@trunkline/publisher';
import { SeededRandom } from '../../support/memory-link.js';
import { until } from '../../support/wait.js';
import type { Child } from '../fixtures/child.js';
import type { World } from '../fixtures/world.js';
import { QueueBook } from './book.js';
import { CODE, publisher, queueWorld } from './members.js';

/** Groups and how many members each has. */
const GROUPS = { three: 3, two: 2, one: 1 };
const WINDOW = 40;
const PER_ROUND = 400;

/** All that members wrote down, in the order of time. */
class Journal {
  readonly file: string;

  constructor(world: World) {
    this.file = join(world.folder, 'journal');
    appendFileSync(this.file, '');
  }

  lines(): string[][] {
    const lines = readFileSync(this.file, 'utf8').split('\n').slice(0, -1);
    return lines.map((line) => line.split(' '));
  }

  count(group: string, what: string): number {
    return this.lines().filter((words) => words[1] === group && words[2] === what).length;
  }

  /** What the lines say, in the book of what may never be. */
  enter(book: QueueBook): void {
    const lines = this.lines().sort(([one], [other]) => Number(BigInt(one!) - BigInt(other!)));
    for (const [, group, what, number, deliveries, marked, body] of lines) {
      const sequence = Number(number);
      if (what === 'acked') book.ack(group!, sequence);
      else {
        const seen = { sequence, deliveries: Number(deliveries), redelivered: marked === '1' };
        book.deliver(group!, seen, body!);
      }
    }
  }
}

async function start(world: World, { file }: Journal, group: string): Promise<Child> {
  const child = world.child('../queues/journal-process.js');
  await child.call('run', world.address, CODE, group, WINDOW, file);
  return child;
}

async function publish(provider: Provider, book: QueueBook, round: number): Promise<void> {
  const bodies = Array.from({ length: PER_ROUND }, (_, index) => `${round}.${index}`);
  const sequences = await provider.publishMany(
    CODE,
    bodies.map((body) => ({ body })),
  );
  for (const [index, sequence] of sequences.entries()) book.confirm(bodies[index]!, sequence);
}

/**
 * In each round a member of each group is killed while it has messages out, and another one comes; in every third the
 * dispatcher is killed too, and in every third it is stopped. Returns the figures.
 */
export async function killMembers(rounds: number): Promise<string> {
  await using world = await queueWorld();
  await using provider = await publisher(world);
  const random = new SeededRandom(rounds);
  const book = new QueueBook();
  const journal = new Journal(world);
  const members: { group: string; child: Child }[] = [];
  for (const [group, count] of Object.entries(GROUPS)) {
    for (let index = 0; index < count; index++) members.push({ group, child: await start(world, journal, group) });
  }
  for (let round = 1; round <= rounds; round++) {
    const acked = journal.count('one', 'acked');
    const published = publish(provider, book, round);
    await until(() => journal.count('one', 'acked') > acked + PER_ROUND / 4, `round ${round}: messages are handled`);
    const victims = Object.keys(GROUPS).map((group) => {
      const those = members.filter((member) => member.group === group);
      return those[Math.floor(random.next() * those.length)]!;
    });
    for (const { child } of victims) child.signal('SIGKILL');
    if (round % 3 === 1) await world.restartDispatcher();
    if (round % 3 === 2) {
      world.dispatcher.signal('SIGTERM');
      assert.equal((await world.dispatcher.ended()).code, 0);
      await world.startDispatcher();
    }
    for (const victim of victims) victim.child = await start(world, journal, victim.group);
    await published;
  }
  const client = await world.client();
  await until(
    async () => {
      const [queue] = await client.queues.list();
      const { messages, groups } = queue!;
      return messages === 0 && groups.every(({ waiting, outstanding }) => waiting + outstanding === 0);
    },
    'all is acknowledged by somebody',
    30_000,
  );
  journal.enter(book);
  assert.deepEqual(book.faults.slice(0, 5), []);
  for (const group of Object.keys(GROUPS)) assert.deepEqual(book.missing(group).slice(0, 5), [], `lost to ${group}`);
  assert.equal(book.confirmed.size, rounds * PER_ROUND);
  assert.equal((await client.queues.list())[0]!.last, rounds * PER_ROUND, 'each is stored once');
  assert.ok(book.redelivered >= rounds, 'what the killed members held came again');
  return `${rounds} rounds: ${book}`;
}
