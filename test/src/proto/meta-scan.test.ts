import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeMeta, encodeMeta, MetaScan } from '@trunkline/proto';
import fc from 'fast-check';

const text = fc.oneof(
  fc.string({ unit: 'binary-ascii', maxLength: 140 }),
  fc.string({ unit: 'grapheme', maxLength: 10 }),
);
const attrs = fc.dictionary(text, fc.oneof(fc.integer(), fc.boolean(), text), { maxKeys: 4 });

/** Where a scan says that it found them, they are what decoding the whole gives. */
function agree(bytes: Uint8Array): boolean {
  const scan = new MetaScan();
  // not at the start of the bytes: offsets count
  const around = Uint8Array.of(0x12, 1, 65, ...bytes, 0x12, 1, 66);
  if (!scan.begin(around, 3, 3 + bytes.length)) return false;
  const { tag, key } = decodeMeta(bytes, 0, bytes.length);
  assert.deepEqual([scan.tag, scan.key], [tag, key]);
  return true;
}

test('a scan finds the tag and key that decoding finds', () => {
  fc.assert(
    fc.property(
      fc.record({ tag: text, key: text, attrs, contentType: text }, { requiredKeys: [] }),
      (meta) => void agree(encodeMeta(meta)),
    ),
    { numRuns: 500 },
  );
});

test('the usual metas are scanned, and of two keys the last counts', () => {
  assert.equal(agree(encodeMeta({ tag: 'T', key: 'k1', attrs: { n: 1, s: 'ä' }, contentType: 'text/plain' })), true);
  assert.equal(agree(new Uint8Array(0)), true);
  assert.equal(agree(Uint8Array.of(0x12, 1, 65, 0x12, 1, 66)), true);
  assert.equal(agree(Uint8Array.of(0x12, 1, 65, 0x12, 0)), true);
});

test('bytes that are cut off or strange are left to the decoder', () => {
  const scan = new MetaScan();
  for (const bytes of [[0x12], [0x12, 2, 65], [0x12, 0x80, 1], [0x08, 1], [0x12, 2, 0xc3, 0xa4]]) {
    assert.equal(scan.begin(Uint8Array.from(bytes), 0, bytes.length), false, String(bytes));
  }
});
