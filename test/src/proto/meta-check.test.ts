import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeMeta, encodeMeta, isReadableMeta } from '@trunkline/proto';
import fc from 'fast-check';

function decodes(bytes: Uint8Array): boolean {
  try {
    decodeMeta(bytes, 0, bytes.length);
    return true;
  } catch {
    return false;
  }
}

const attribute = fc.oneof(
  fc.string({ maxLength: 60 }),
  fc.double(),
  fc.maxSafeInteger(),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }),
  fc.boolean(),
  fc.uint8Array({ maxLength: 20 }),
);
const meta = fc.record(
  {
    tag: fc.string({ maxLength: 140 }),
    key: fc.string({ unit: 'grapheme', maxLength: 20 }),
    attrs: fc.dictionary(fc.string({ maxLength: 10 }), attribute, { maxKeys: 5 }),
    contentType: fc.string({ maxLength: 20 }),
    ttlMs: fc.integer({ min: 1, max: 2 ** 40 }),
  },
  { requiredKeys: [] },
);

test('a meta is readable if and only if it can be decoded, also with any of its bytes changed', () => {
  fc.assert(
    fc.property(meta, fc.nat(), fc.integer({ min: 0, max: 255 }), fc.nat(), (given, place, byte, cut) => {
      const bytes = encodeMeta(given);
      assert.equal(isReadableMeta(bytes, 0, bytes.length), true);
      if (bytes.length === 0) return;
      bytes[place % bytes.length] = byte;
      assert.equal(isReadableMeta(bytes, 0, bytes.length), decodes(bytes));
      const short = bytes.subarray(0, cut % bytes.length);
      assert.equal(isReadableMeta(short, 0, short.length), decodes(short));
    }),
    { numRuns: 2000 },
  );
});
