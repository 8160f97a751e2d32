import assert from 'node:assert/strict';
import { test } from 'node:test';
import { IdMap } from '@trunkline/proto';
import fc from 'fast-check';

const id = fc.oneof(fc.nat({ max: 100 }), fc.integer({ min: 2 ** 32 - 70, max: 2 ** 32 - 1 }), fc.nat());
const step = fc.oneof(
  fc.record({ do: fc.constant('set' as const), id, value: fc.string() }),
  fc.record({ do: fc.constant('delete' as const), id, value: fc.constant('') }),
  fc.record({ do: fc.constant('get' as const), id, value: fc.constant('') }),
  fc.record({ do: fc.constant('clear' as const), id, value: fc.constant('') }),
);

test('an IdMap holds what a Map holds', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const map = new Map<number, { value: string }>();
      const ids = new IdMap<{ value: string }>();
      for (const { do: what, id, value } of steps) {
        if (what === 'set') {
          const item = { value };
          map.set(id, item);
          ids.set(id, item);
        } else if (what === 'delete') assert.equal(ids.delete(id), map.delete(id));
        else if (what === 'clear' && id % 7 === 0) {
          map.clear();
          ids.clear();
        }
        assert.equal(ids.get(id), map.get(id));
        assert.equal(ids.has(id), map.has(id));
        assert.equal(ids.size, map.size);
      }
      assert.deepEqual(new Set(ids.values()), new Set(map.values()));
      assert.equal([...ids.values()].length, map.size);
    }),
  );
});

test('what was deleted leaves no place behind', () => {
  const ids = new IdMap<{ id: number }>();
  for (let id = 1; id <= 1000; id++) ids.set(id, { id });
  assert.deepEqual([...ids.values()].slice(0, 3), [{ id: 1 }, { id: 2 }, { id: 3 }]);
  for (let id = 1; id <= 1000; id++) ids.delete(id);
  assert.equal(ids.size, 0);
  assert.deepEqual([...ids.values()], []);
  ids.set(5, { id: 5 });
  assert.deepEqual([...ids.values()], [{ id: 5 }]);
});
