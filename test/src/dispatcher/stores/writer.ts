// A process that stores without end and says what was answered: `node writer.js DIRECTORY`.
import { writeSync } from 'node:fs';
import { SqliteStore } from '@trunkline/dispatcher/stores';
import { chunk, commit, put } from './helpers.js';

/** How many messages each queue keeps. */
export const KEPT = 2000;

if (process.argv[1]?.endsWith('writer.js')) {
  const [directory = ''] = process.argv.slice(2);
  const store = new SqliteStore({ directory, logBytes: 512 * 1024, reserveBytes: 64 * 1024 });
  const { queues } = await store.open();
  const ends = [1, 2].map((queue) => queues.find((stored) => stored.queue === queue)?.last ?? 0);

  /** One commit to both queues, with a record that tells their ends, and a trim of what is old. */
  async function store1(): Promise<void> {
    const count = 1 + Math.floor(Math.random() * 200);
    const append = [1, 2].map((queue) => {
      const first = ends[queue - 1]! + 1;
      ends[queue - 1] = first + count * queue - 1;
      return chunk(queue, first, ends[queue - 1], 100);
    });
    const [one, two] = ends;
    const trim = [1, 2].map((queue) => ({ queue, upTo: ends[queue - 1]! - KEPT }));
    await store.commit(commit({ append, put: put({ ends: `${one} ${two}` }), trim }));
    // not through a stream: it must be out before the next commit is answered
    writeSync(1, `${one} ${two}\n`);
  }

  const writer = async (): Promise<void> => {
    for (;;) await store1();
  };
  await Promise.all([writer(), writer()]);
}
