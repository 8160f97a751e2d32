import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  DataMessage,
  decodeJson,
  decodeMeta,
  encodeBody,
  encodeMessage,
  encodeMeta,
  Flag,
  MessageEncoder,
  type Meta,
  MetaWriter,
  TrunklineError,
  Type,
} from '@trunkline/proto';
import fc from 'fast-check';

const code = (expected: string) => (error: unknown) => error instanceof TrunklineError && error.code === expected;
const read = (body: unknown, meta?: Partial<Meta>) =>
  new DataMessage(encodeMessage({ type: Type.RESPONSE, code: 7, line: 8, generation: 9 }, body, meta), 0);

test('a body is nothing, bytes, text or JSON, and comes back as it was (F51)', () => {
  assert.equal(read(undefined).body.length, 0);
  assert.equal(read(undefined).json(), undefined);
  assert.equal(read(new Uint8Array(0)).body.length, 0);
  assert.deepEqual(read(Uint8Array.of(0, 255)).body, Uint8Array.of(0, 255));
  assert.deepEqual(read(new Uint16Array([513])).body, Uint8Array.of(1, 2));
  assert.equal(read('héllo').text(), 'héllo');
  assert.equal(read('héllo').isJson, false);
  assert.deepEqual(read({ v: 0, b: false, s: '', n: null }).json(), { v: 0, b: false, s: '', n: null });
  assert.equal(read(null).json(), null);
  assert.equal(read(0).flags, Flag.JSON);
});

test('the header fields of a message are read where it begins', () => {
  const first = encodeMessage({ type: Type.RESPONSE, code: 1 }, 'x');
  const second = encodeMessage({
    type: 200,
    code: 0xffffffff,
    line: 2,
    sequence: 2 ** 53 - 1,
    generation: 3,
    flags: 4,
  });
  const message = new DataMessage(Uint8Array.from([...first, ...second]), first.length);
  const { type, line, sequence, generation, final, length } = message;
  assert.deepEqual(
    [type, message.code, line, sequence, generation, final, length],
    [200, 0xffffffff, 2, 2 ** 53 - 1, 3, true, 32],
  );
});

test('meta stands between header and body', () => {
  const encoder = new MessageEncoder();
  for (const meta of [{ key: 'ACME' }, { key: 'ACME' }, { key: '' }, { tag: 't', attrs: { a: 1 } }, {}]) {
    const target = new Uint8Array(encoder.encode('body', meta));
    encoder.write(target, 0);
    assert.equal(new TextDecoder().decode(target.subarray(encoder.metaLength)), 'body');
  }
  const message = read([1], { tag: 't', key: 'k', attrs: { price: 101.5, big: 2n ** 60n }, contentType: 'a/b' });
  assert.deepEqual({ ...message.attrs }, { price: 101.5, big: 2n ** 60n });
  assert.deepEqual([message.tag, message.key, message.contentType, message.json()], ['t', 'k', 'a/b', [1]]);
});

test('what cannot be encoded or decoded is a coded error', () => {
  const circular: unknown[] = [];
  circular.push(circular);
  for (const body of [circular, 1n, { a: 1n }, () => {}, Symbol('x'), '\ud800'])
    assert.throws(() => encodeBody(body), code('BODY_INVALID'));
  assert.throws(() => read('x', { key: 5 as never }), code('META_INVALID'));
  assert.throws(() => read('x', { key: 'k'.repeat(70000) }), code('META_INVALID'));
  assert.throws(() => read(Uint8Array.of(0xff, 0xfe)).text(), code('BODY_INVALID'));
  assert.throws(() => read(Uint8Array.of(0xff, 0xfe)).json(), code('BODY_INVALID'));
  assert.throws(() => decodeJson(Uint8Array.of(0x7b)), code('BODY_INVALID'));
});

test('any text and any JSON value survives, short or long', () => {
  const encoder = new MessageEncoder();
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), fc.nat(40), (text, repeat) => {
      const long = text.repeat(repeat);
      const bytes = new Uint8Array(encoder.encode(long) + 3);
      encoder.write(bytes, 3);
      assert.equal(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(3)), long);
    }),
    { numRuns: 60 },
  );
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      assert.deepEqual(decodeJson(encodeBody([value]).bytes), JSON.parse(JSON.stringify([value])));
    }),
  );
  assert.equal(read('é'.repeat(50000)).text(), 'é'.repeat(50000));
});

test('the quick way to write a meta gives the bytes of the other one', () => {
  const writer = new MetaWriter();
  const text = fc.oneof(fc.string({ maxLength: 60 }), fc.string({ unit: 'binary', maxLength: 5 }));
  const number = fc.oneof(
    fc.maxSafeInteger(),
    fc.integer(),
    fc.double(),
    fc.constantFrom(0, -0, 127, 128, -1, 2 ** 53),
  );
  const value = fc.oneof(
    text,
    number,
    fc.boolean(),
    fc.bigInt({ min: 0n, max: 99n }),
    fc.uint8Array(),
    fc.constant(null),
  );
  const attrs = fc.dictionary(text, value as fc.Arbitrary<never>, { maxKeys: 60 });
  const metas = fc.record({ tag: text, key: text, contentType: text, attrs }, { requiredKeys: [] });
  let quick = 0;
  fc.assert(
    fc.property(metas, (meta) => {
      const length = writer.write(meta as Partial<Meta>);
      if (length < 0) return;
      quick++;
      assert.deepEqual(writer.bytes.slice(0, length), new Uint8Array(encodeMeta(meta as Partial<Meta>)));
    }),
    { numRuns: 500 },
  );
  assert.ok(quick > 20);
  for (let count = 0; count < 120; count++) {
    const many = Object.fromEntries(
      Array.from({ length: count }, (_, index) => [`attribute-${index}`, 'x'.repeat(48)]),
    );
    const message = read('body', { attrs: many });
    assert.deepEqual([{ ...message.attrs }, message.text()], [many, 'body']);
  }
});

test('attributes may send a message while they are read', () => {
  const encoder = new MessageEncoder();
  const inner = new Uint8Array(100);
  const attrs = {
    first: 1,
    get second() {
      encoder.encode('inner', { key: 'inner' });
      encoder.write(inner, 0);
      return 2;
    },
  };
  const bytes = new Uint8Array(encoder.encode('outer', { key: 'outer', attrs }));
  encoder.write(bytes, 0);
  const meta = decodeMeta(bytes, 0, encoder.metaLength);
  assert.deepEqual([meta.key, { ...meta.attrs }], ['outer', { first: 1, second: 2 }]);
  assert.deepEqual(new TextDecoder().decode(bytes.subarray(encoder.metaLength)), 'outer');
  assert.equal(decodeMeta(inner, 0, 7).key, 'inner');
});
