import assert from 'node:assert/strict';
import type { Provider } from '@trunkline/publisher';
import { SeededRandom } from '../../support/memory-link.js';
import { until } from '../../support/wait.js';
import type { Child } from '../fixtures/child.js';
import { QueueBook } from './book.js';
import { Journal, startMember } from './journal.js';
import { CODE, publisher, queueWorld } from './members.js';

/** Groups and how many members each has. */
const GROUPS = { three: 3, two: 2, one: 1 };
const WINDOW = 40;
const PER_ROUND = 400;

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
    for (let index = 0; index < count; index++)
      members.push({ group, child: await startMember(world, journal, group, WINDOW) });
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
    for (const victim of victims) victim.child = await startMember(world, journal, victim.group, WINDOW);
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
