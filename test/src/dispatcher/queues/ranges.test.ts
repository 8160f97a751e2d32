import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Ranges } from '../../../../dispatcher/dist/queues/ranges.js';

const MOST = 60;
const range = fc
  .tuple(fc.integer({ min: 1, max: MOST }), fc.integer({ min: 0, max: 20 }))
  .map(([first, more]) => [first, Math.min(MOST, first + more)] as const);
const step = fc.record({ add: fc.boolean(), range });

/** The ranges of a set, as the class is to keep them. */
function rangesOf(set: ReadonlySet<number>): { first: number; last: number }[] {
  const ranges: { first: number; last: number }[] = [];
  for (let value = 1; value <= MOST; value++) {
    if (!set.has(value)) continue;
    const open = ranges.at(-1);
    if (open?.last === value - 1) open.last = value;
    else ranges.push({ first: value, last: value });
  }
  return ranges;
}

test('ranges are a set of integers, whatever is added and taken away', () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 40 }),
      range,
      fc.integer({ min: 1, max: 5 }),
      (steps, [first, last], most) => {
        const ranges = new Ranges();
        const set = new Set<number>();
        for (const { add, range: part } of steps) {
          if (add) ranges.add(...part);
          else ranges.remove(...part);
          for (let value = part[0]; value <= part[1]; value++) {
            if (add) set.add(value);
            else set.delete(value);
          }
          assert.deepEqual([...ranges], rangesOf(set));
          assert.equal(ranges.size, set.size);
        }
        for (let value = 0; value <= MOST + 1; value++) assert.equal(ranges.has(value), set.has(value), `${value}`);
        const [lowest] = rangesOf(set);
        const head = lowest && { first: lowest.first, last: Math.min(lowest.last, lowest.first + most - 1) };
        assert.deepEqual(ranges.head(most), head);
        assert.deepEqual(ranges.head(), lowest);
        const absent = new Set<number>();
        for (let value = first; value <= last; value++) if (!set.has(value)) absent.add(value);
        assert.deepEqual([...ranges.holes(first, last)], rangesOf(absent));
        const copy = new Ranges();
        copy.add(1, 1);
        copy.addAll(ranges);
        assert.deepEqual([...copy], rangesOf(new Set([1, ...set])));
      },
    ),
  );
});
