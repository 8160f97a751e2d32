import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Commit, MemoryImage, type Store, type StoreContents } from '@trunkline/dispatcher/stores';
import fc from 'fast-check';
import { assertChunks, chunk, commit, put, ranges, readAll, record, rejects } from './helpers.js';

/** A place where stores of one kind are opened one after the other. */
export interface Place {
  store(): Store;
}

export interface Implementation {
  readonly name: string;
  /** What was stored is there when the next store is opened at the same place. */
  readonly survives: boolean;
  place(context: TestContext): Place;
}

interface Opened {
  readonly store: Store;
  readonly contents: StoreContents;
  reopen(): Promise<Opened>;
}

async function open(context: TestContext, place: Place): Promise<Opened> {
  const store = place.store();
  context.after(() => store.close());
  const contents = await store.open();
  return {
    store,
    contents,
    reopen: async () => {
      await store.close();
      return open(context, place);
    },
  };
}

/** The contract of the port: every implementation passes it. */
export function contract(implementation: Implementation): void {
  const { name, survives } = implementation;
  const check = (what: string, run: (opened: Opened, context: TestContext) => Promise<void>) =>
    test(`${name}: ${what}`, async (context) => run(await open(context, implementation.place(context)), context));

  chunks(check);
  refusals(check);
  records(check);
  lifetime(check, implementation);
  if (survives) reopening(check);
  properties(implementation);
}

type Check = (what: string, run: (opened: Opened, context: TestContext) => Promise<void>) => void;

function chunks(check: Check): void {
  check('what was stored is read in its order, each queue for itself', async ({ store, contents }) => {
    assert.deepEqual([...contents.records], []);
    assert.deepEqual(contents.queues, []);
    assert.deepEqual(contents.damages, []);
    await store.commit(commit({ append: [chunk(1, 1, 3), chunk(2, 1), chunk(1, 4)] }));
    await store.commit(commit({ append: [chunk(1, 5, 100)] }));
    assertChunks(await readAll(store, 1), [chunk(1, 1, 3), chunk(1, 4), chunk(1, 5, 100)]);
    assertChunks(await readAll(store, 2), [chunk(2, 1)]);
    assert.deepEqual(await store.read(3, 1, 1000), []);
  });

  check('commits are applied in the order of the calls, several under way', async ({ store }) => {
    const done: number[] = [];
    const commits = Array.from({ length: 20 }, (_, index) =>
      store.commit(commit({ append: [chunk(1, index + 1)] })).then(() => done.push(index + 1)),
    );
    await Promise.all(commits);
    assert.deepEqual(
      done,
      Array.from({ length: 20 }, (_, index) => index + 1),
    );
    assertChunks(
      await readAll(store, 1),
      done.map((first) => chunk(1, first)),
    );
  });

  check('a read begins with the chunk that holds the sequence, or the first above it', async ({ store }) => {
    await store.commit(commit({ append: [chunk(1, 10, 19), chunk(1, 20, 29), chunk(1, 30, 39)] }));
    assert.equal(ranges(await store.read(1, 1, 10_000)), '10-19 20-29 30-39');
    assert.equal(ranges(await store.read(1, 15, 10_000)), '10-19 20-29 30-39');
    assert.equal(ranges(await store.read(1, 19, 10_000)), '10-19 20-29 30-39');
    assert.equal(ranges(await store.read(1, 20, 10_000)), '20-29 30-39');
    assert.equal(ranges(await store.read(1, 39, 10_000)), '30-39');
    assert.equal(ranges(await store.read(1, 40, 10_000)), '');
  });

  check('a read returns about as much as was asked for, and at least one chunk', async ({ store }) => {
    const append = Array.from({ length: 10 }, (_, index) => chunk(1, index + 1, index + 1, 1000));
    await store.commit(commit({ append }));
    assert.equal(ranges(await store.read(1, 1, 0)), '1-1');
    assert.equal(ranges(await store.read(1, 2, 1)), '2-2');
    assert.equal(ranges(await store.read(1, 2, 3000)), '2-2 3-3 4-4');
    assert.equal((await store.read(1, 1, 1_000_000)).length, 10);
  });

  check('a trim forgets whole chunks; one that reaches beyond stays', async ({ store }) => {
    await store.commit(commit({ append: [chunk(1, 1, 10), chunk(1, 11, 20), chunk(1, 21, 30)] }));
    await store.commit(commit({ trim: [{ queue: 1, upTo: 9 }] }));
    assert.equal(ranges(await readAll(store, 1)), '1-10 11-20 21-30');
    await store.commit(commit({ trim: [{ queue: 1, upTo: 15 }] }));
    assert.equal(ranges(await readAll(store, 1)), '11-20 21-30');
    await store.commit(
      commit({
        trim: [
          { queue: 1, upTo: 20 },
          { queue: 7, upTo: 3 },
        ],
      }),
    );
    assert.equal(ranges(await readAll(store, 1)), '21-30');
    await store.commit(commit({ append: [chunk(1, 31)], trim: [{ queue: 1, upTo: 30 }] }));
    assert.equal(ranges(await readAll(store, 1)), '31-31');
    await store.commit(commit({ trim: [{ queue: 1, upTo: 1000 }] }));
    assert.equal(ranges(await readAll(store, 1)), '');
    await store.commit(commit({ append: [chunk(1, 32, 33)] }));
    assert.equal(ranges(await readAll(store, 1)), '32-33');
  });

  check('a trim of many chunks, and chunks after it', async ({ store }) => {
    for (let round = 0; round < 10; round++) {
      const append = Array.from({ length: 1000 }, (_, index) => chunk(1, round * 1000 + index + 1));
      await store.commit(commit({ append }));
    }
    await store.commit(commit({ trim: [{ queue: 1, upTo: 9_995 }] }));
    assert.equal(ranges(await readAll(store, 1)), '9996-9996 9997-9997 9998-9998 9999-9999 10000-10000');
    await store.commit(commit({ append: [chunk(1, 10_001)], trim: [{ queue: 1, upTo: 9_999 }] }));
    assert.equal(ranges(await readAll(store, 1)), '10000-10000 10001-10001');
  });

  check('a drop forgets a queue; it may begin again at any number', async ({ store }) => {
    await store.commit(commit({ append: [chunk(1, 1, 10), chunk(2, 1, 10)] }));
    await store.commit(commit({ append: [chunk(1, 11)], drop: [1, 9] }));
    assert.equal(ranges(await readAll(store, 1)), '');
    assert.equal(ranges(await readAll(store, 2)), '1-10');
    await store.commit(commit({ append: [chunk(1, 3, 4)] }));
    assert.equal(ranges(await readAll(store, 1)), '3-4');
  });

  check('numbers up to 2^53-1 are exact', async ({ store }) => {
    const most = Number.MAX_SAFE_INTEGER;
    await store.commit(commit({ append: [chunk(4294967295, most - 10, most - 2), chunk(4294967295, most - 1)] }));
    await store.commit(commit({ append: [chunk(4294967295, most)] }));
    const expected = `${most - 10}-${most - 2} ${most - 1}-${most - 1} ${most}-${most}`;
    assert.equal(ranges(await readAll(store, 4294967295)), expected);
    assert.equal(ranges(await store.read(4294967295, most - 1, 1)), `${most - 1}-${most - 1}`);
    await store.commit(commit({ trim: [{ queue: 4294967295, upTo: most - 1 }] }));
    assert.equal(ranges(await readAll(store, 4294967295)), `${most}-${most}`);
  });

  check('a message of 50 MiB', async ({ store }) => {
    const size = 50 * 1024 * 1024;
    await store.commit(commit({ append: [chunk(1, 1, 1, size), chunk(1, 2)] }));
    assertChunks(await store.read(1, 1, 1), [chunk(1, 1, 1, size)]);
    assert.equal(ranges(await store.read(1, 2, 1)), '2-2');
  });

  check('bytes in a view of a larger buffer, shared memory, and one buffer twice', async ({ store }) => {
    const large = new Uint8Array(1000).fill(7);
    const view = large.subarray(100, 200);
    const shared = new Uint8Array(new SharedArrayBuffer(100)).fill(8);
    const own = new Uint8Array(100).fill(9);
    const append = [view, shared, own, own].map((bytes, at) => ({
      queue: at === 3 ? 2 : 1,
      first: at + 1,
      last: at + 1,
      bytes,
    }));
    await store.commit(commit({ append }));
    assert.equal(large.length, 1000, 'the larger buffer is still there');
    const found = [...(await readAll(store, 1)), ...(await readAll(store, 2))];
    assert.deepEqual(
      found.map(({ bytes }) => [bytes.length, bytes[0], bytes[99]]),
      [7, 8, 9, 9].map((value) => [100, value, value]),
    );
  });

  check('use of the device is told', async ({ store }) => {
    const before = await store.usage();
    await store.commit(commit({ append: [chunk(1, 1, 1, 100_000)] }));
    const after = await store.usage();
    assert.ok(after.bytes >= before.bytes + 100_000, `${before.bytes} → ${after.bytes}`);
    assert.ok(after.free === undefined || after.free > 0);
  });
}

function refusals(check: Check): void {
  const bad: [string, Commit['append'][number]][] = [
    ['a hole', chunk(1, 5)],
    ['a repetition', chunk(1, 3)],
    ['an end before the beginning', { ...chunk(1, 4), last: 3 }],
    ['a fraction', { ...chunk(2, 1), first: 0.5 }],
    ['nothing', { queue: 2, first: 1, last: 1, bytes: new Uint8Array(0) }],
    ['number 0', { ...chunk(2, 1), first: 0 }],
    ['a number beyond 2^53-1', { ...chunk(2, 1), last: 2 ** 53 }],
  ];
  for (const [what, wrong] of bad) {
    check(`a commit with ${what} is refused wholly, and the store goes on`, async ({ store }) => {
      await store.commit(commit({ append: [chunk(1, 1, 3)], put: put({ a: '1' }) }));
      const refused = commit({
        append: [chunk(3, 1), wrong],
        put: put({ a: '2', b: '2' }),
        trim: [{ queue: 1, upTo: 3 }],
        drop: [1],
      });
      await rejects(store.commit(refused), 'OPTION_INVALID');
      assert.equal(ranges(await readAll(store, 1)), '1-3');
      assert.equal(ranges(await readAll(store, 3)), '');
      await store.commit(commit({ append: [chunk(1, 4), chunk(3, 1)] }));
      assert.equal(ranges(await readAll(store, 1)), '1-3 4-4');
    });
  }

  check('what was under way behind a failed commit fails with it; what comes after it is taken', async ({ store }) => {
    await store.commit(commit({ append: [chunk(1, 1)] }));
    const results = await Promise.allSettled([
      store.commit(commit({ append: [chunk(1, 2)] })),
      store.commit(commit({ append: [chunk(1, 9)] })),
      store.commit(commit({ append: [chunk(2, 1)] })),
      store.commit(commit({ append: [chunk(1, 3)] })),
    ]);
    assert.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected', 'rejected', 'rejected'],
    );
    assert.equal(ranges(await readAll(store, 1)), '1-1 2-2');
    assert.equal(ranges(await readAll(store, 2)), '');
    await store.commit(commit({ append: [chunk(1, 3), chunk(2, 1)] }));
    assert.equal(ranges(await readAll(store, 1)), '1-1 2-2 3-3');
  });
}

function records(check: Check): void {
  check('an empty commit, and one of records only', async ({ store }) => {
    await store.commit(commit({}));
    await store.commit(commit({ put: put({ 'group/1/a': 'x', '': 'empty key', Ünïcode: '' }) }));
    await store.commit(commit({ put: put({ 'group/1/a': null, unknown: null }) }));
  });
}

function lifetime(check: Check, { name, place }: Implementation): void {
  check('close ends everything, twice and at once', async ({ store }) => {
    const stored = store.commit(commit({ append: [chunk(1, 1)] }));
    const closed = [store.close(), store.close()];
    await stored;
    await Promise.all(closed);
    await store.close();
    await rejects(store.commit(commit({})), 'STORE_FAILED');
    await rejects(store.read(1, 1, 1), 'STORE_FAILED');
    await rejects(store.usage(), 'STORE_FAILED');
    await rejects(store.open(), 'STORE_FAILED');
  });

  test(`${name}: a store that was never opened refuses and closes`, async (context) => {
    const store = place(context).store();
    await rejects(store.commit(commit({})), 'STORE_FAILED');
    await store.close();
  });
}

function reopening(check: Check): void {
  check('everything is there after opening again', async (opened) => {
    const most = Number.MAX_SAFE_INTEGER;
    await opened.store.commit(
      commit({
        append: [chunk(1, 1, 1000), chunk(2, most - 5, most - 1), chunk(3, 1), chunk(4, 1)],
        put: put({ a: '1', b: '2', c: '3' }),
      }),
    );
    await opened.store.commit(commit({ append: [chunk(1, 1001, 1002)], put: put({ b: 'two', c: null }), drop: [3] }));
    await opened.store.commit(
      commit({
        trim: [
          { queue: 1, upTo: 1000 },
          { queue: 4, upTo: 1 },
        ],
      }),
    );
    for (let round = 0; round < 3; round++) {
      opened = await opened.reopen();
      const { contents, store } = opened;
      assert.deepEqual(
        [...contents.records].map(([key, value]) => [key, record(value)]),
        [
          ['a', '1'],
          ['b', 'two'],
        ],
      );
      const queues = [...contents.queues].sort((left, right) => left.queue - right.queue);
      assert.deepEqual(queues, [
        { queue: 1, first: 1001, last: 1002 + round, bytes: 80 + 40 * round },
        { queue: 2, first: most - 5, last: most - 1, bytes: 200 },
      ]);
      assert.deepEqual(contents.damages, []);
      assertChunks(await readAll(store, 2), [chunk(2, most - 5, most - 1)]);
      await store.commit(commit({ append: [chunk(1, 1003 + round)] }));
    }
  });

  check('1,000,000 messages are opened by their ends, however many chunks they are in', async (opened) => {
    const append = Array.from({ length: 500 }, (_, index) => chunk(1, index * 2000 + 1, index * 2000 + 2000, 20));
    for (let at = 0; at < 500; at += 50) await opened.store.commit(commit({ append: append.slice(at, at + 50) }));
    const { contents, store } = await opened.reopen();
    assert.deepEqual(contents.queues, [{ queue: 1, first: 1, last: 1_000_000, bytes: 20_000_000 }]);
    assert.equal(ranges(await store.read(1, 777_777, 1)), '776001-778000');
  });
}

/** Any sequence of commits, reads and reopenings gives what a model in memory gives. */
function properties({ name, survives, place: makePlace }: Implementation): void {
  const action = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('append' as const),
        queue: fc.integer({ min: 1, max: 3 }),
        count: fc.integer({ min: 1, max: 50 }),
        size: fc.oneof(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1000, max: 3000 })),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('trim' as const),
        queue: fc.integer({ min: 1, max: 3 }),
        upTo: fc.integer({ min: 0, max: 500 }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('drop' as const), queue: fc.integer({ min: 1, max: 3 }) }) },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('put' as const),
        key: fc.constantFrom('a', 'b', 'c'),
        value: fc.option(fc.uint8Array({ maxLength: 50 }), { nil: null }),
      }),
    },
  );
  const step = fc.oneof(
    { weight: 8, arbitrary: fc.array(action, { minLength: 1, maxLength: 4 }) },
    { weight: 1, arbitrary: fc.constant('reopen' as const) },
  );

  test(`${name}: any sequence of commits gives what a model gives`, async (context) => {
    const property = fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const place = makePlace(context);
      const model = new MemoryImage();
      const ends = new Map<number, number>();
      let store = place.store();
      await store.open();
      try {
        for (const actions of steps) {
          if (actions === 'reopen') {
            if (!survives) continue;
            await store.close();
            store = place.store();
            const { records, queues } = await store.open();
            const byQueue = (list: StoreContents['queues']) => [...list].sort((a, b) => a.queue - b.queue);
            assert.deepEqual(byQueue(queues), byQueue(model.stored()));
            const sorted = (map: ReadonlyMap<string, Uint8Array>) =>
              [...map].map(([key, value]) => [key, Buffer.from(value).toString('hex')]).sort();
            assert.deepEqual(sorted(records), sorted(model.records));
            continue;
          }
          const append: ReturnType<typeof chunk>[] = [];
          const records = new Map<string, Uint8Array | null>();
          const trim: { queue: number; upTo: number }[] = [];
          const drop: number[] = [];
          for (const one of actions) {
            if (one.kind === 'append') {
              const first = (ends.get(one.queue) ?? 0) + 1;
              append.push(chunk(one.queue, first, first + one.count - 1, one.size));
              ends.set(one.queue, first + one.count - 1);
            } else if (one.kind === 'trim') trim.push(one);
            else if (one.kind === 'drop') drop.push(one.queue);
            else records.set(one.key, one.value);
          }
          for (const queue of drop) ends.delete(queue);
          model.apply({
            append: append.map((part) => ({ ...part, bytes: part.bytes.slice() })),
            put: records,
            trim,
            drop,
          });
          await store.commit({ append, put: records, trim, drop });
        }
        for (const queue of [1, 2, 3]) {
          assertChunks(await readAll(store, queue, 1, 5000), model.queues.get(queue)?.read(1, 1e9) ?? []);
        }
      } finally {
        await store.close();
      }
    });
    await fc.assert(property, { numRuns: 25 });
  });
}
