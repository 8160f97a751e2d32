import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  DataMessage,
  decodeJson,
  encodeBody,
  encodeMessage,
  Flag,
  MessageEncoder,
  type Meta,
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

test('meta stands between header and body, cached keys and full metas alike', () => {
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
