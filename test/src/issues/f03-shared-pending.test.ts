import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TrunklineError } from '@trunkline/proto';
import { nothing } from '../support/dispatcher-world.js';
import { Parts } from './support.js';

async function pending(refuse: boolean) {
  const parts = await Parts.start([{ code: 100 }]);
  let asked = 0;
  parts.provider().provide(100, async () => {
    asked++;
    await parts.sleep(500);
    if (refuse) throw new TrunklineError('REFUSED', 'not today');
    return () => {};
  });
  const [one, two] = [parts.client(), parts.client()];
  await parts.settle();
  const first = one.subscribe(100, { params: 1 });
  first.on('error', () => {});
  await parts.advance(100);
  // the second of the other subscriber, and one that wants it through a filter
  const others = [two.subscribe(100, { params: 1 }), two.subscribe(100, { params: 1, filter: 'key == "a"' })];
  for (const other of others) other.on('error', () => {});
  const answers = Promise.allSettled([first, ...others].map((each) => each.accepted()));
  await parts.advance(399);
  assert.deepEqual(
    [first, ...others].map(({ state }) => state),
    Array(3).fill('pending'),
  );
  await parts.advance(10);
  return { parts, two, asked: () => asked, answers: await answers };
}

test('F3: who joins while the first request is pending is acknowledged with it', async () => {
  const { asked, answers } = await pending(false);
  assert.equal(asked(), 1);
  assert.deepEqual(
    answers.map(({ status }) => status),
    Array(3).fill('fulfilled'),
  );
});

test('F3: who joins while the first request is pending is refused with it, and nothing is left', async () => {
  const { parts, two, asked, answers } = await pending(true);
  assert.equal(asked(), 1);
  for (const answer of answers) assert.equal((answer as PromiseRejectedResult).reason.code, 'REFUSED');
  assert.deepEqual(parts.made.leftovers(), nothing);
  two.subscribe(100, { params: 1 }).on('error', () => {});
  await parts.settle();
  assert.equal(asked(), 2);
});

test('F3: the first one that leaves while pending takes nothing from the second', async () => {
  const parts = await Parts.start([{ code: 100 }]);
  let asked = 0;
  let stopped = 0;
  parts.provider().provide(100, async () => {
    asked++;
    await parts.sleep(500);
    return () => stopped++;
  });
  const first = parts.client().subscribe(100);
  const second = parts.client().subscribe(100);
  await parts.advance(100);
  await first.unsubscribe();
  await parts.advance(1000);
  assert.deepEqual([asked, stopped, second.state], [1, 0, 'live']);
});
