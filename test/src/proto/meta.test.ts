import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type AttributeValue,
  decodeMeta,
  EMPTY_META,
  encodeMeta,
  MAX_META,
  type Meta,
  TrunklineError,
} from '@trunkline/proto';
import fc from 'fast-check';
import { fuzzPayload } from '../fuzz/payload.js';
import { seededRandom } from '../fuzz/random.js';
import { fromHex, toHex } from './fixtures.js';

const isInvalid = (error: unknown) => error instanceof TrunklineError && error.code === 'META_INVALID';
const decode = (bytes: Uint8Array) => decodeMeta(bytes, 0, bytes.length);
const trip = (meta: Partial<Meta>) => decode(encodeMeta(meta));
const tripValue = (value: AttributeValue) => trip({ attrs: { value } }).attrs.value;
/** Compares content, whatever the prototypes and the kind of byte array. */
const plain = (attrs: object) =>
  Object.fromEntries(
    Object.entries(attrs).map(([name, value]) => [name, value instanceof Uint8Array ? toHex(value) : value]),
  );

test('nothing is no bytes, and reads as empty fields', () => {
  for (const meta of [{}, { tag: '' }, { attrs: {} }, { tag: '', key: '', contentType: '', attrs: {} }, EMPTY_META])
    assert.equal(encodeMeta(meta).length, 0);
  assert.deepEqual(decode(new Uint8Array(0)), EMPTY_META);
  assert.deepEqual(Object.keys(EMPTY_META).sort(), ['attrs', 'contentType', 'key', 'tag']);
});

test('reads only its own part of a batch', () => {
  const meta = encodeMeta({ tag: 't', key: 'k', contentType: 'text/plain', attrs: { a: 1 } });
  const batch = new Uint8Array(meta.length + 20).fill(0xff);
  batch.set(meta, 7);
  for (const bytes of [batch, Buffer.from(batch)]) {
    const read = decodeMeta(bytes, 7, 7 + meta.length);
    assert.deepEqual([read.tag, read.key, read.contentType, read.attrs.a], ['t', 'k', 'text/plain', 1]);
    assert.throws(() => decodeMeta(bytes, 7, 7 + meta.length - 1), isInvalid);
    assert.throws(() => decodeMeta(bytes, 7, 7 + meta.length + 1), isInvalid);
  }
});

test('zero, false and empty are there after decoding (F49, F51)', () => {
  const attrs = { v: 0, b: false, s: '', u: 0n, bytes: new Uint8Array(0) };
  const read = trip({ attrs }).attrs;
  assert.deepEqual(plain(read), { v: 0, b: false, s: '', u: 0, bytes: '' });
  assert.deepEqual(Object.keys(read).sort(), Object.keys(attrs).sort());
  assert.equal(JSON.stringify({ v: read.v, b: read.b, s: read.s }), '{"v":0,"b":false,"s":""}');
});

test('numbers come back as they were, to 64 bits', () => {
  const doubles = [0.1, -101.5, 2 ** 53, 2 ** 60, -(2 ** 63), 1e300, 5e-324, Number.POSITIVE_INFINITY, Number.NaN, -0];
  for (const value of doubles) assert.ok(Object.is(tripValue(value), value), String(value));
  for (const value of [0, 1, -1, 2 ** 31, -(2 ** 31) - 1, 2 ** 32, 2 ** 53 - 1, 1 - 2 ** 53])
    assert.ok(Object.is(tripValue(value), value), String(value));
  for (const value of [2n ** 53n, 2n ** 63n - 1n, -(2n ** 63n), 2n ** 63n, 2n ** 64n - 1n, 2n ** 64n - 2n ** 53n])
    assert.equal(tripValue(value), value);
  for (const value of [0n, -1n, 2n ** 53n - 1n]) assert.equal(tripValue(value), Number(value));
  for (const value of [2n ** 64n, -(2n ** 63n) - 1n]) assert.throws(() => encodeMeta({ attrs: { value } }), isInvalid);
});

test('any meta comes back the same', () => {
  const text = fc.string({ unit: 'binary', maxLength: 20 });
  const value: fc.Arbitrary<AttributeValue> = fc.oneof(
    text,
    fc.boolean(),
    fc.double(),
    fc.maxSafeInteger(),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }),
    fc.uint8Array({ maxLength: 20 }),
  );
  const meta = fc.record({ tag: text, key: text, contentType: text, attrs: fc.dictionary(text, value) });
  fc.assert(
    fc.property(meta, (given) => {
      const read = trip(given);
      assert.deepEqual([read.tag, read.key, read.contentType], [given.tag, given.key, given.contentType]);
      const expected = Object.fromEntries(
        Object.entries(given.attrs).map(([name, one]) => [
          name,
          typeof one === 'bigint' && Number.isSafeInteger(Number(one)) ? Number(one) : one,
        ]),
      );
      assert.deepEqual(plain(read.attrs), plain(expected));
    }),
  );
});

test('names are told apart by case and by composition, and are never the prototype (F69)', () => {
  const names = [
    'Price',
    'price',
    'STRASSE',
    'straße',
    'é',
    'e\u0301',
    'constructor',
    'toString',
    '__proto__',
    '',
    '0',
  ];
  const attrs = Object.fromEntries(names.map((name, index) => [name, index + 1]));
  const read = trip({ attrs }).attrs;
  assert.deepEqual(Object.keys(read).sort(), [...names].sort());
  for (const [index, name] of names.entries()) assert.equal(read[name], index + 1);
  assert.equal(Object.getPrototypeOf(read), null);
  assert.equal(read.valueOf, undefined);
  assert.equal(Object.hasOwn(Object.prototype, 'polluted'), false);
});

test('what cannot be said is refused', () => {
  const values: unknown[] = [{}, [], () => 1, Symbol('s'), new Date(), new Float64Array(1), 'half \ud800'];
  for (const value of values) assert.throws(() => encodeMeta({ attrs: { value } } as Partial<Meta>), isInvalid);
  for (const field of ['tag', 'key', 'contentType']) {
    for (const value of [5, 0, false, {}, [], '\udc00'])
      assert.throws(() => encodeMeta({ [field]: value }), isInvalid, `${field}: ${String(value)}`);
  }
  for (const attrs of ['abc', [1], 5])
    assert.throws(() => encodeMeta({ attrs } as unknown as Partial<Meta>), isInvalid);
  assert.throws(() => encodeMeta({ attrs: { '\ud800': 1 } }), isInvalid);
  assert.equal(encodeMeta({ attrs: { a: undefined, b: null } } as unknown as Partial<Meta>).length, 0);
});

test('a meta has at most 65,535 bytes', () => {
  const frame = encodeMeta({ tag: 'x'.repeat(60_000) }).length - 60_000;
  const tag = 'x'.repeat(MAX_META - frame);
  assert.equal(encodeMeta({ tag }).length, MAX_META);
  assert.equal(trip({ tag }).tag, tag);
  assert.throws(() => encodeMeta({ tag: `${tag}x` }), isInvalid);
});

test('bytes that are no Meta are META_INVALID (F50)', () => {
  for (const hex of [
    '0a02fffe', // tag that is not UTF-8
    '1202c328', // key
    '1a080a02fffe12021002', // attribute name
    '1a090a0161120 40a02fffe'.replace(' ', ''), // attribute value
    '2203eda080', // half a surrogate pair
    '0a05', // longer than it is
    '0affffffff0f', // length 2^32-1
    '0a', // no length
    'ff', // half a tag
    '0b', // a group that does not end
    '1a0312010a', // value cut off
    '00', // field 0
  ])
    for (const bytes of [fromHex(hex), Buffer.from(hex, 'hex')]) assert.throws(() => decode(bytes), isInvalid, hex);
});

test('fields of a later version are skipped, the last of two values counts', () => {
  assert.equal(decode(fromHex('0a0174f8060a')).tag, 't');
  assert.equal(decode(fromHex('0a01740a0175')).tag, 'u');
  assert.deepEqual(plain(decode(fromHex('1a0a0a016112050a01781002')).attrs), { a: 1 }); // "x", then 1
  assert.deepEqual(plain(decode(fromHex('1a030a0161')).attrs), {}); // an attribute without a value
});

test('random and mutated payloads do no harm', () => {
  for (const seed of [1, 2, 3]) fuzzPayload(seededRandom(seed), 1000);
});
