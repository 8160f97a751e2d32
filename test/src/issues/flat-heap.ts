import assert from 'node:assert/strict';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { nothing } from '../support/dispatcher-world.js';
import { Parts } from './support.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Subscribes and unsubscribes so many times, with ever new params: the heap of all parts stays as it was. */
export async function assertFlatHeap(cycles: number): Promise<void> {
  const parts = await Parts.start([{ code: 100 }]);
  parts.made.world.tap = () => {};
  const provider = parts.provider();
  provider.provide(100, () => () => {});
  const client = parts.client();
  let next = 0;
  const cycle = async (count: number) => {
    for (let done = 0; done < count; done += 500) {
      const handles = Array.from({ length: 500 }, () => client.subscribe(100, { params: { number: next++ } }));
      await parts.settle();
      for (const handle of handles) void handle.unsubscribe();
      await parts.settle();
    }
  };
  await cycle(5000);
  collect();
  const before = process.memoryUsage().heapUsed;
  await cycle(cycles);
  collect();
  const grown = process.memoryUsage().heapUsed - before;
  // 100 bytes for each would be 10 MB in the case as it was told, with 100,000
  assert.ok(grown < Math.max(1e6, cycles * 50), `the heap grew by ${grown} bytes`);
  assert.deepEqual(client.counts, { subscriptions: 0, lines: 0, calls: 0, sends: 0 });
  assert.equal(provider.subscriptions, 0);
  assert.deepEqual(parts.made.leftovers(), nothing);
}
