import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StoreDamage } from '@trunkline/dispatcher/stores';
import { SeededRandom } from '../../support/memory-link.js';
import { SimulatedDisk } from '../../support/simulated-store.js';
import { chunk, commit, put, ranges, record, rejects } from './helpers.js';

/** A disk with a clock that goes when it is told to. */
class Clocked {
  now = 0;
  private readonly waiting: { at: number; run: () => void }[] = [];
  readonly disk: SimulatedDisk;

  constructor(seed: number) {
    this.disk = new SimulatedDisk(new SeededRandom(seed), (milliseconds, run) => {
      this.waiting.push({ at: this.now + milliseconds, run });
    });
  }

  async go(milliseconds: number): Promise<void> {
    const end = this.now + milliseconds;
    for (;;) {
      this.waiting.sort((left, right) => left.at - right.at);
      const next = this.waiting[0];
      if (next === undefined || next.at > end) break;
      this.waiting.shift();
      this.now = next.at;
      next.run();
      for (let turn = 0; turn < 4; turn++) await Promise.resolve();
    }
    this.now = end;
  }
}

/** Ten commits, a crash in the middle; what was answered, and what is there afterwards. */
async function crashed(seed: number): Promise<{ answered: number; found: number; record: number }> {
  const clocked = new Clocked(seed);
  clocked.disk.behaviour.flush = [1, 9];
  const store = clocked.disk.attach();
  await store.open();
  let answered = 0;
  for (let first = 1; first <= 10; first++) {
    store.commit(commit({ append: [chunk(1, first)], put: put({ last: String(first) }) })).then(() => answered++);
  }
  await clocked.go(25);
  clocked.disk.crash();
  const before = answered;
  await clocked.go(1000);
  assert.equal(answered, before, 'nobody is told anything after the crash');
  const { queues, records } = await clocked.disk.attach().open();
  return { answered, found: queues[0]?.last ?? 0, record: Number(record(records.get('last')) ?? 0) };
}

test('a crash keeps what was answered, and perhaps some first commits of those under way', async () => {
  const more = new Set<number>();
  for (let seed = 1; seed <= 60; seed++) {
    const { answered, found, record } = await crashed(seed);
    assert.ok(found >= answered, `seed ${seed}`);
    assert.equal(found, record, 'a commit is there wholly or not at all');
    more.add(found - answered);
    assert.deepEqual(await crashed(seed), { answered, found, record }, 'a seed replays');
  }
  assert.ok(more.has(0) && more.size > 2, [...more].join());
});

test('a slow flush answers late and keeps the order', async () => {
  const clocked = new Clocked(1);
  clocked.disk.behaviour.flush = [50, 50];
  const store = clocked.disk.attach();
  await store.open();
  const answers: number[] = [];
  for (const first of [1, 2, 3]) store.commit(commit({ append: [chunk(1, first)] })).then(() => answers.push(first));
  await clocked.go(49);
  assert.deepEqual(answers, []);
  await clocked.go(2);
  assert.deepEqual(answers, [1]);
  await clocked.go(100);
  assert.deepEqual(answers, [1, 2, 3]);
});

test('a full disk refuses chunks and takes records and trims', async () => {
  const clocked = new Clocked(1);
  const store = clocked.disk.attach();
  await store.open();
  clocked.disk.behaviour.capacity = 1000;
  const run = async (parts: Parameters<typeof commit>[0]) => {
    const done = store.commit(commit(parts));
    done.catch(() => undefined);
    await clocked.go(10);
    return done;
  };
  await run({ append: [chunk(1, 1, 1, 600)] });
  await rejects(run({ append: [chunk(1, 2, 2, 600)] }), 'STORE_FULL');
  await run({ put: put({ group: 'x'.repeat(2000) }) });
  await rejects(run({ append: [chunk(1, 2, 2, 10)] }), 'STORE_FULL');
  await run({ put: put({ group: 'x' }), trim: [{ queue: 1, upTo: 1 }] });
  await run({ append: [chunk(1, 2, 2, 600)] });
});

test('failing commits and reads, and a range that is damaged', async () => {
  const clocked = new Clocked(1);
  const { disk } = clocked;
  const store = disk.attach();
  await store.open();
  const settle = async <T>(asked: Promise<T>): Promise<T> => {
    asked.catch(() => undefined);
    await clocked.go(10);
    return asked;
  };
  disk.failCommits(1);
  await rejects(settle(store.commit(commit({ append: [chunk(1, 1)] }))), 'STORE_FAILED');
  await settle(store.commit(commit({ append: [chunk(1, 1, 5), chunk(1, 6, 10), chunk(1, 11, 15)] })));
  disk.failReads(1);
  await rejects(settle(store.read(1, 1, 1000)), 'STORE_FAILED');
  disk.damage(1, 7, 8);
  assert.equal(ranges(await settle(store.read(1, 1, 10_000))), '1-5');
  await assert.rejects(settle(store.read(1, 6, 10_000)), (error) => {
    assert.ok(error instanceof StoreDamage);
    assert.deepEqual([error.damage.first, error.damage.last], [6, 10]);
    return true;
  });
  assert.equal(ranges(await settle(store.read(1, 11, 10_000))), '11-15');
  await rejects(disk.attach().open(), 'STORE_LOCKED');
});
