import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { SqliteStore } from '@trunkline/dispatcher/stores';
import { runScript } from '../../support/command.js';
import { temporaryFolder } from '../../support/daemon.js';
import { SeededRandom } from '../../support/memory-link.js';
import { assertChunks, chunk, readAll, record } from './helpers.js';
import { KEPT } from './writer.js';

const script = fileURLToPath(new URL('./writer.js', import.meta.url));

/** Kills a storing process again and again and looks whether everything it was answered is there (F81). */
export async function killRounds(context: TestContext, rounds: number): Promise<void> {
  const directory = temporaryFolder(context);
  const random = new SeededRandom(rounds);
  let commits = 0;
  for (let round = 0; round < rounds; round++) {
    const child = runScript(context, [script, directory]);
    const wanted = 1 + Math.floor(random.next() * 200);
    await child.until(() => child.out.split('\n').length > wanted, `${wanted} commits were answered`);
    await child.kill('SIGKILL');
    const { lines } = child;
    commits += lines.length;
    const [one, two] = lines[lines.length - 1]!.split(' ').map(Number);

    const store = new SqliteStore({ directory });
    context.after(() => store.close());
    const { records, queues, damages } = await store.open();
    assert.deepEqual(damages, []);
    const ends = [1, 2].map((queue) => queues.find((stored) => stored.queue === queue)!.last);
    assert.equal(record(records.get('ends')), ends.join(' '), 'a commit is there wholly or not at all');
    assert.ok(ends[0]! >= one! && ends[1]! >= two!, `answered up to ${one} ${two}, found up to ${ends}`);
    for (const queue of [1, 2]) {
      const chunks = await readAll(store, queue);
      const { first, last } = queues.find((stored) => stored.queue === queue)!;
      assert.ok(first <= Math.max(1, last - KEPT + 1), 'nothing more was trimmed than was asked for');
      let next = first;
      for (const part of chunks) {
        assertChunks([part], [chunk(queue, next, part.last, 100)]);
        next = part.last + 1;
      }
      assert.equal(next, last + 1);
    }
    await store.close();
  }
  context.diagnostic(`${rounds} kills, ${commits} commits answered, all there`);
}
