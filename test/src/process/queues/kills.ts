import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { SeededRandom } from '../../support/memory-link.js';
import { until } from '../../support/wait.js';
import { World } from '../fixtures/world.js';
import { QueueBook } from './book.js';
import { consumer, Publisher } from './load.js';

const CODE = 4001;
const GROUPS = ['shared', 'shared', 'alone'];

/**
 * The dispatcher is killed so many times under load, at any moment; returns the figures (F81). Nothing that was
 * confirmed is lost or stored twice, nothing that was acknowledged for certain comes again.
 */
export async function killUnderLoad(rounds: number): Promise<string> {
  await using world = await World.start({
    services: [{ code: CODE, kind: 'queue', storage: 'disk' }],
    dataDirectory: 'data',
  });
  const random = new SeededRandom(rounds);
  const book = new QueueBook();
  const began = performance.now();
  const consumers = [];
  for (const group of GROUPS) {
    consumers.push(consumer(await world.client(), book, { code: CODE, group, window: 100 }));
  }
  const publishers = await Promise.all(
    [0, 0, 900].map((size, index) => Publisher.start(world, book, { name: `p${index}`, code: CODE, size })),
  );
  for (let round = 1; round <= rounds; round++) {
    const before = { confirmed: book.confirmed.size, acked: book.acked('shared') };
    const flows = () => book.confirmed.size > before.confirmed + 500 && book.acked('shared') > before.acked + 100;
    await until(flows, `round ${round}: publishes and acknowledgements are confirmed`, 30_000);
    await pause(random.next() * 60);
    await world.restartDispatcher();
    assert.deepEqual(book.faults.slice(0, 5), [], `round ${round}`);
  }
  await Promise.all(publishers.map((publisher) => publisher.finish()));
  const seconds = (performance.now() - began) / 1000;
  const client = await world.client();
  await until(
    async () => {
      const [queue] = await client.queues.list();
      return queue!.groups.every(({ waiting, outstanding }) => waiting + outstanding === 0);
    },
    'all is acknowledged',
    60_000,
  );
  await until(async () => (await client.queues.list())[0]!.messages === 0, 'nothing is left (F98)');
  assert.deepEqual(book.faults.slice(0, 5), []);
  for (const group of new Set(GROUPS)) assert.deepEqual(book.missing(group).slice(0, 5), [], `lost to ${group}`);
  assert.deepEqual(book.refusals.slice(0, 5), []);
  // each confirmed and each unconfirmed publish has at most one place, so the sequences tell how many there are
  const [queue] = await client.queues.list();
  assert.ok(queue!.last <= book.confirmed.size + book.unknown.size, `${queue!.last} stored`);
  return `${rounds} kills in ${seconds.toFixed(1)} s: ${book}`;
}
