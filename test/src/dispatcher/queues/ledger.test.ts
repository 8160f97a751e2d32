import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Ledger } from '../../../../dispatcher/dist/queues/ledger.js';

interface Chunk {
  readonly first: number;
  readonly last: number;
  readonly bytes: number;
}

const chunk = fc.record({ messages: fc.integer({ min: 1, max: 50 }), bytes: fc.integer({ min: 1, max: 5000 }) });

function filled(sizes: readonly { messages: number; bytes: number }[]): { ledger: Ledger; chunks: Chunk[] } {
  const ledger = new Ledger();
  const chunks: Chunk[] = [];
  let first = 1;
  for (const { messages, bytes } of sizes) {
    const last = first + messages - 1;
    chunks.push({ first, last, bytes });
    ledger.append(first, last, bytes);
    first = last + 1;
  }
  return { ledger, chunks };
}

const sum = (chunks: readonly Chunk[]) => chunks.reduce((total, { bytes }) => total + bytes, 0);

test('what is stored is known by chunk: whole chunks go, and the sum is exact', () => {
  fc.assert(
    fc.property(fc.array(chunk, { maxLength: 30 }), fc.array(fc.nat(1500), { maxLength: 5 }), (sizes, floors) => {
      const { ledger, chunks } = filled(sizes);
      assert.equal(ledger.bytes, sum(chunks));
      for (const floor of floors.sort((one, other) => one - other)) {
        const left = chunks.filter(({ last }) => last > floor);
        const before = chunks.length;
        assert.equal(ledger.isWorthTrimming(floor), left.length < before, `${floor}`);
        ledger.trim(floor);
        chunks.splice(0, before - left.length);
        assert.equal(ledger.bytes, sum(chunks));
        assert.equal(ledger.isWorthTrimming(floor), false);
        assert.equal(ledger.oldestEnd, chunks.length > 1 ? chunks[0]!.last : undefined);
      }
      ledger.clear();
      assert.deepEqual([ledger.bytes, ledger.oldestEnd, ledger.isWorthTrimming(1e9)], [0, undefined, false]);
    }),
  );
});

test('of very many chunks the borders get coarser; the sum stays exact, and all can be given back in steps', () => {
  const COUNT = 50_000;
  const MESSAGES = 10;
  const { ledger, chunks } = filled(
    Array.from({ length: COUNT }, (_, index) => ({ messages: MESSAGES, bytes: 100 + (index % 7) })),
  );
  assert.equal(ledger.bytes, sum(chunks));
  const upTo = [0];
  for (const { bytes } of chunks) upTo.push(upTo.at(-1)! + bytes);
  const held = (floor: number) => upTo.at(-1)! - upTo[Math.floor(floor / MESSAGES)]!;
  let floor = 0;
  let steps = 0;
  for (let end = ledger.oldestEnd; end !== undefined; end = ledger.oldestEnd) {
    assert.ok(end > floor, `${end} after ${floor}`);
    assert.ok(ledger.isWorthTrimming(end));
    const before = ledger.bytes;
    ledger.trim(end);
    floor = end;
    steps++;
    assert.ok(ledger.bytes < before);
    // no more off than the parts whose borders are not known
    const off = Math.abs(ledger.bytes - held(floor));
    assert.ok(off <= 4 * 1024 * 11, `${off} bytes off at ${floor}`);
  }
  // each append beyond the bound would look at all parts if they grew in number
  assert.ok(steps > 50 && steps <= 4096, `${steps} steps`);
  ledger.trim(COUNT * MESSAGES);
  assert.deepEqual([ledger.bytes, ledger.oldestEnd], [0, undefined]);
});

test('a queue that is opened is one part whose borders are not known: it is given back in steps', () => {
  const ledger = new Ledger();
  ledger.append(1, 10_000, 1_000_000, true);
  assert.equal(ledger.isWorthTrimming(1000), false);
  assert.equal(ledger.oldestEnd, 1024);
  // whoever drops that much to get below a bound has to find less afterwards
  assert.equal(ledger.isWorthTrimming(1023), false);
  assert.equal(ledger.isWorthTrimming(1024), true);
  ledger.trim(1024);
  assert.equal(ledger.bytes, 1_000_000 - 102_400);
  ledger.append(10_001, 10_010, 50);
  ledger.trim(10_005);
  assert.deepEqual([ledger.bytes, ledger.oldestEnd], [50, undefined]);
});
