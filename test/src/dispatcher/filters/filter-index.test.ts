import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Filter, FilterCompiler, FilterIndex, type FilterInput } from '@trunkline/dispatcher';
import { TrunklineError } from '@trunkline/proto';
import fc from 'fast-check';
import { randomFilter, randomInput, seededRandom } from '../../fuzz/filter.js';

function input(more: Partial<FilterInput> = {}): FilterInput {
  return { tag: '', key: '', attrs: {}, body: undefined, ...more };
}

function found<T>(index: FilterIndex<T>, message: FilterInput): T[] {
  const items: T[] = [];
  index.match(message, (item) => items.push(item));
  return items;
}

test('items are found by tag, by key and by the rest of their filters', () => {
  const compiler = new FilterCompiler();
  const index = new FilterIndex<string>();
  const filters = ['', 'key == "A"', 'tag == "T"', 'key == "A" && attrs.x > 1', 'attrs.x > 1', 'key == "B"'];
  for (const text of filters) index.add(compiler.acquire(text), text);
  assert.equal(index.size, 6);
  const message = input({ tag: 'T', key: 'A', attrs: { x: 1 } });
  assert.deepEqual(found(index, message).sort(), ['', 'key == "A"', 'tag == "T"']);
  assert.deepEqual(found(index, input({ attrs: { x: 2 } })).sort(), ['', 'attrs.x > 1']);
  assert.deepEqual(found(index, input({ key: 'A', attrs: { x: 2 } })).length, 4);
});

test('adding twice is adding once, removing what is not there does nothing', () => {
  const compiler = new FilterCompiler();
  const index = new FilterIndex<string>();
  const filter = compiler.acquire('body.x == 1');
  const other = compiler.acquire('key == "A"');
  index.add(filter, 'one');
  index.add(filter, 'one');
  assert.equal(index.size, 1);
  assert.equal(index.usesBody, true);
  index.remove(filter, 'two');
  index.remove(other, 'one');
  assert.deepEqual(found(index, input({ body: { x: 1 } })), ['one']);
  index.remove(filter, 'one');
  index.remove(filter, 'one');
  assert.equal(index.size, 0);
  assert.equal(index.usesBody, false);
});

test('a filter is evaluated once for all its items, and an indexed one not at all unless it is hit', () => {
  let errors = 0;
  const compiler = new FilterCompiler({ onEvaluationError: () => errors++ });
  const index = new FilterIndex<number>();
  const filter = compiler.acquire('attrs.x > "a"');
  for (let item = 0; item < 10; item++) index.add(filter, item);
  for (let item = 0; item < 1000; item++) index.add(compiler.acquire(`key == "${item}" && attrs.x > "a"`), item);
  assert.deepEqual(found(index, input({ key: '7', attrs: { x: 1 } })), []);
  assert.equal(errors, 2);
  assert.equal(found(index, input({ key: '7', attrs: { x: 'b' } })).length, 11);
});

test('visiting may remove and add', () => {
  const compiler = new FilterCompiler();
  const index = new FilterIndex<number>();
  const all = compiler.acquire('');
  const keyed = compiler.acquire('key == "A"');
  for (let item = 0; item < 5; item++) {
    index.add(all, item);
    index.add(keyed, 10 + item);
  }
  const visited: number[] = [];
  index.match(input({ key: 'A' }), (item) => {
    visited.push(item);
    index.remove(all, item);
    index.remove(all, 3);
    index.remove(keyed, 11);
    index.add(all, 100 + item);
  });
  assert.deepEqual(visited, [0, 1, 2, 4, 10, 12, 13, 14]);
  assert.deepEqual(found(index, input({ key: 'A' })).length, 8 + 4);
  assert.equal(index.size, 12);
});

test('a visitor that throws leaves the index whole', () => {
  const compiler = new FilterCompiler();
  const index = new FilterIndex<string>();
  const all = compiler.acquire('');
  index.add(all, 'a');
  index.add(all, 'b');
  assert.throws(() =>
    index.match(input(), (item) => {
      index.remove(all, item);
      throw new Error('visitor');
    }),
  );
  assert.deepEqual(found(index, input()), ['b']);
  index.remove(all, 'b');
  assert.deepEqual([index.size, found(index, input())], [0, []]);
});

function acquireSome(compiler: FilterCompiler, random: () => number, count: number): Filter[] {
  const filters: Filter[] = [];
  for (let i = 0; i < count; i++) {
    try {
      filters.push(compiler.acquire(randomFilter(random)));
    } catch (error) {
      assert.ok(error instanceof TrunklineError);
    }
  }
  return filters;
}

test('property: the index finds exactly what evaluating each filter alone finds, also after removals', () => {
  let hits = 0;
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const random = seededRandom(seed);
      const compiler = new FilterCompiler();
      const index = new FilterIndex<number>();
      const lanes = new Map(acquireSome(compiler, random, 30).map((filter, item) => [item, filter]));
      for (const [item, filter] of lanes) index.add(filter, item);
      while (lanes.size > 0) {
        const message = randomInput(random);
        const expected = [...lanes].filter(([, filter]) => filter.matches(message)).map(([item]) => item);
        const actual = found(index, message).sort((a, b) => a - b);
        assert.deepEqual(actual, expected);
        hits += actual.length;
        assert.equal(index.size, lanes.size);
        assert.equal(
          index.usesBody,
          [...lanes.values()].some((filter) => filter.usesBody),
        );
        for (const [item, filter] of lanes) {
          if (random() < 0.7) continue;
          index.remove(filter, item);
          lanes.delete(item);
          compiler.release(filter);
        }
      }
      assert.equal(index.size, 0);
      assert.equal(index.usesBody, false);
      assert.equal(compiler.size, 0);
    }),
    { numRuns: 60 },
  );
  assert.ok(hits > 500, `${hits} matches`);
});
