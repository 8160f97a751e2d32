import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  bodyStart,
  checkBatch,
  FIRST_APPLICATION_TYPE,
  HEADER_BYTES,
  headerFault,
  isData,
  isKnownType,
  MAX_SEQUENCE,
  metaStart,
  OFFSET,
  readU16,
  readU32,
  readU53,
  Type,
  typeName,
  writeHeader,
  writeU32,
  writeU53,
} from '@trunkline/proto';
import fc from 'fast-check';
import { fuzzBatch } from '../fuzz/batch.js';
import { fuzzHeader } from '../fuzz/header.js';
import { seededRandom } from '../fuzz/random.js';
import { fromHex, toHex } from './fixtures.js';

const GOLDEN = [
  '24000000', // length 36
  '01', // version
  '02', // RESPONSE
  '08', // header length in words
  '10', // JSON
  'e9030000', // code 1001
  '0c000000', // line 12
  'ffffffffffff1f00', // sequence 2^53-1
  '03000000', // generation
  '0200', // meta length
  '0000', // reserved
];

test('the bytes of a header are these', () => {
  const bytes = new Uint8Array(HEADER_BYTES + 3).fill(0xee);
  const header = { type: Type.RESPONSE, flags: 16, code: 1001, line: 12, generation: 3, metaLength: 2 };
  writeHeader(bytes, 1, 36, { ...header, sequence: MAX_SEQUENCE });
  assert.equal(toHex(bytes), `ee${GOLDEN.join('')}eeee`);
  writeHeader(bytes, 0, 32, { type: Type.RESET });
  assert.equal(toHex(bytes.subarray(0, 32)), `2000000001140800${'00'.repeat(24)}`);
});

test('headers are written and read back the same, at any place', () => {
  const u32 = fc.oneof(fc.nat(0xffffffff), fc.constantFrom(0, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1));
  const header = fc.record({
    type: fc.constantFrom(...Object.values(Type), 128, 255),
    flags: fc.nat(255),
    code: u32,
    line: u32,
    generation: u32,
    sequence: fc.oneof(fc.maxSafeNat(), fc.constantFrom(0, 2 ** 32 - 1, 2 ** 32, MAX_SEQUENCE)),
    metaLength: fc.nat(65535),
  });
  fc.assert(
    fc.property(header, fc.nat(9), fc.nat(100), (value, at, body) => {
      const length = HEADER_BYTES + value.metaLength + body;
      const bytes = new Uint8Array(at + length + 5).fill(0x5a);
      writeHeader(bytes, at, length, value);
      assert.equal(headerFault(bytes, at, bytes.length, length), undefined);
      assert.equal(headerFault(bytes, at, bytes.length, length - 1), 'tooLarge');
      assert.deepEqual(
        {
          type: bytes[at + OFFSET.type],
          flags: bytes[at + OFFSET.flags],
          code: readU32(bytes, at + OFFSET.code),
          line: readU32(bytes, at + OFFSET.line),
          generation: readU32(bytes, at + OFFSET.generation),
          sequence: readU53(bytes, at + OFFSET.sequence),
          metaLength: readU16(bytes, at + OFFSET.meta),
        },
        { ...value },
      );
      assert.equal(metaStart(bytes, at), at + HEADER_BYTES);
      assert.equal(bodyStart(bytes, at), at + HEADER_BYTES + value.metaLength);
      assert.equal(bytes[at + HEADER_BYTES], 0x5a);
      if (at > 0) assert.equal(bytes[at - 1], 0x5a);
    }),
  );
});

test('a stamped sequence and line leave the rest as it was', () => {
  const bytes = fromHex(GOLDEN.join(''));
  writeU53(bytes, OFFSET.sequence, 2 ** 32 + 5);
  writeU32(bytes, OFFSET.line, 0xfffffffe);
  const expected = [...GOLDEN];
  expected[6] = 'feffffff';
  expected[7] = '0500000001000000';
  assert.equal(toHex(bytes), expected.join(''));
});

test('headerFault names the field that is bad', () => {
  const good = new Uint8Array(40);
  writeHeader(good, 0, 40, { type: Type.RESPONSE, metaLength: 8 });
  const faultOf = (change: (bytes: Uint8Array) => void, maxMessage = 100) => {
    const bytes = good.slice();
    change(bytes);
    return headerFault(bytes, 0, bytes.length, maxMessage);
  };
  const set = (offset: number, ...values: number[]) => faultOf((bytes) => bytes.set(values, offset));
  assert.equal(set(0), undefined);
  assert.equal(headerFault(good, 0, 31, 100), 'short');
  assert.equal(headerFault(good, 9, 40, 100), 'short');
  assert.equal(headerFault(good, 40, 40, 100), 'short');
  for (const length of [0, 1, 31, 41, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1])
    assert.equal(
      faultOf((bytes) => writeU32(bytes, 0, length)),
      'length',
      String(length),
    );
  assert.equal(
    faultOf(() => {}, 39),
    'tooLarge',
  );
  for (const version of [0, 2, 255]) assert.equal(set(OFFSET.version, version), 'version');
  for (const type of [0, 6, 15, 22, 127]) assert.equal(set(OFFSET.type, type), 'type');
  for (const words of [0, 7, 11, 255]) assert.equal(set(OFFSET.words, words), 'headerLength');
  assert.equal(set(OFFSET.sequence + 6, 31), undefined);
  assert.equal(set(OFFSET.sequence + 6, 32), 'sequence');
  assert.equal(set(OFFSET.sequence + 7, 1), 'sequence');
  assert.equal(set(OFFSET.meta, 9), 'meta');
  assert.equal(set(OFFSET.meta, 255, 255), 'meta');
  assert.equal(set(OFFSET.words, 9), 'meta'); // the extension leaves 4 bytes for 8 of meta
  assert.equal(set(OFFSET.reserved, 1), 'reserved');
  assert.equal(set(OFFSET.reserved + 1, 1), 'reserved');
});

test('a wrong length costs nothing, however large it says to be (F45)', () => {
  const small = new Uint8Array(42);
  for (const length of [0xffffffff, 0x7fffffff, 43, 0]) {
    writeHeader(small, 0, 42, { type: Type.RESPONSE });
    writeU32(small, 0, length);
    const before = process.memoryUsage().arrayBuffers;
    for (let round = 0; round < 1000; round++) assert.equal(headerFault(small, 0, 42, 1048576), 'length');
    assert.ok(process.memoryUsage().arrayBuffers - before < 1_000_000);
  }
});

test('types have names, and are known, data or neither', () => {
  assert.equal(typeName(Type.GAP), 'GAP');
  assert.equal(typeName(130), 'APPLICATION(130)');
  assert.equal(typeName(7), 'UNKNOWN(7)');
  for (let type = 0; type < 256; type++) {
    const named = (Object.values(Type) as number[]).includes(type);
    assert.equal(isKnownType(type), named || type >= FIRST_APPLICATION_TYPE);
    if (isData(type)) assert.ok(isKnownType(type));
  }
  assert.deepEqual(
    Object.values(Type).filter((type) => isData(type)),
    [Type.RESPONSE, Type.PUBLISH],
  );
});

test('a batch is checked to its last message, and holds at least one', () => {
  const batch = new Uint8Array(96);
  for (const at of [0, 32, 64]) writeHeader(batch, at, 32, { type: Type.RESET });
  checkBatch(batch, 32);
  batch[64 + OFFSET.version] = 9;
  assert.throws(() => checkBatch(batch, 32), { code: 'BATCH_INVALID', fault: 'version', message: /at byte 64/ });
  assert.throws(() => checkBatch(new Uint8Array(0), 32), { code: 'BATCH_INVALID', fault: 'short' });
});

test('random and mutated headers and batches do no harm', () => {
  for (const seed of [1, 2, 3]) {
    fuzzHeader(seededRandom(seed), 2000);
    fuzzBatch(seededRandom(seed), 500);
  }
});
