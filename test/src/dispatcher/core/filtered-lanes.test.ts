import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { DispatcherWorld } from '../../support/dispatcher-world.js';

const KEYS = ['a', 'b', 'c', 'd', 'e', ''];

/** Filters by key, some of which let the same messages pass, and how each message is judged by hand. */
const filters: readonly (readonly [text: string, passes: (key: string, n: number) => boolean])[] = [
  ['key == "a"', (key) => key === 'a'],
  ['key == "b"', (key) => key === 'b'],
  ['key == "b" && attrs.n > 5', (key, n) => key === 'b' && n > 5],
  ['key == "c"', (key) => key === 'c'],
  ['attrs.n >= 3', (_key, n) => n >= 3],
  ['key != "d"', (key) => key !== 'd'],
];

const message = fc.record({ key: fc.constantFrom(...KEYS), n: fc.nat({ max: 9 }), size: fc.nat({ max: 40 }) });
const runs = fc.array(fc.array(message, { minLength: 1, maxLength: 30 }), { minLength: 1, maxLength: 4 });

test('each lane gets exactly the responses that its filter lets pass, in order and unharmed', async () => {
  await fc.assert(
    fc.asyncProperty(fc.subarray(filters.slice(), { minLength: 1 }), runs, async (chosen, sent) => {
      const world = await DispatcherWorld.start([{ code: 1, providers: 'dynamic' }]);
      const provider = await world.provider(1);
      const [subscriber, other] = [await world.peer(), await world.peer()];
      chosen.forEach(([filter], index) => {
        subscriber.request(1, index + 1, { filter });
      });
      other.request(1, 1);
      await world.settle();
      const [request] = provider.take('REQUEST');
      provider.answer(request!);
      await world.settle();
      const lines = new Map(subscriber.take('ACCEPTED').map(({ line, fields }) => [line, Number(fields.request) - 1]));
      assert.equal(lines.size, chosen.length);

      const expected: string[][] = chosen.map(() => []);
      const all: string[] = [];
      let count = 0;
      for (const run of sent) {
        // one batch, one run of one stream
        for (const { key, n, size } of run) {
          const body = `${++count}${'.'.repeat(size)}`;
          provider.respond(request!, body, { key, attrs: { n } });
          all.push(body);
          chosen.forEach(([, passes], index) => {
            if (passes(key, n)) expected[index]!.push(body);
          });
        }
        await world.settle();
      }
      const got: string[][] = chosen.map(() => []);
      for (const { line, body, sequence } of subscriber.take('RESPONSE')) {
        assert.equal(Number.parseInt(body, 10), sequence);
        got[lines.get(line)!]!.push(body);
      }
      assert.deepEqual(got, expected);
      // what was forwarded as it came is not touched by copies for others
      assert.deepEqual(
        other.take('RESPONSE').map(({ body }) => body),
        all,
      );
    }),
    { numRuns: 200 },
  );
});
