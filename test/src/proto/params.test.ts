import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  decodeParams,
  encodeParams,
  keyBytes,
  keyOf,
  MAX_PARAMS_DEPTH,
  packParams,
  paramsKey,
  TrunklineError,
} from '@trunkline/proto';
import fc from 'fast-check';
import { loadFixtures } from './fixtures.js';

const canonical = (value: unknown) => new TextDecoder().decode(encodeParams(value));
const decode = (json: string) => decodeParams(new TextEncoder().encode(json));
const isInvalid = (error: unknown) => error instanceof TrunklineError && error.code === 'PARAMS_INVALID';
const refused = (value: unknown) => assert.throws(() => encodeParams(value), isInvalid);

interface ParamsFixture {
  name: string;
  json: string;
  canonical?: string;
  error?: string;
}

for (const { name, json, canonical: text, error } of loadFixtures<ParamsFixture>('params')) {
  test(`fixture: ${name}`, () => {
    if (text === undefined) {
      assert.equal(error, 'PARAMS_INVALID');
      assert.throws(() => encodeParams(decode(json)), isInvalid);
    } else {
      assert.equal(canonical(decode(json)), text);
      assert.equal(canonical(decode(text)), text);
    }
  });
}

test('numbers are those of RFC 8785, appendix B', () => {
  const examples: [bits: bigint, text: string][] = [
    [0x0000000000000000n, '0'],
    [0x8000000000000000n, '0'],
    [0x0000000000000001n, '5e-324'],
    [0x8000000000000001n, '-5e-324'],
    [0x7fefffffffffffffn, '1.7976931348623157e+308'],
    [0xffefffffffffffffn, '-1.7976931348623157e+308'],
    [0x4340000000000000n, '9007199254740992'],
    [0xc340000000000000n, '-9007199254740992'],
    [0x4430000000000000n, '295147905179352830000'],
    [0x44b52d02c7e14af5n, '9.999999999999997e+22'],
    [0x44b52d02c7e14af6n, '1e+23'],
    [0x44b52d02c7e14af7n, '1.0000000000000001e+23'],
    [0x444b1ae4d6e2ef4en, '999999999999999700000'],
    [0x444b1ae4d6e2ef4fn, '999999999999999900000'],
    [0x444b1ae4d6e2ef50n, '1e+21'],
    [0x3eb0c6f7a0b5ed8cn, '9.999999999999997e-7'],
    [0x3eb0c6f7a0b5ed8dn, '0.000001'],
    [0x41b3de4355555553n, '333333333.3333332'],
    [0x41b3de4355555554n, '333333333.33333325'],
    [0x41b3de4355555555n, '333333333.3333333'],
    [0x41b3de4355555556n, '333333333.3333334'],
    [0x41b3de4355555557n, '333333333.33333343'],
    [0xbecbf647612f3696n, '-0.0000033333333333333333'],
    [0x43143ff3c1cb0959n, '1424953923781206.2'],
  ];
  for (const [bits, text] of examples) {
    const number = new Float64Array(new BigUint64Array([bits]).buffer)[0];
    assert.equal(canonical(number), text);
  }
});

test('no params, empty bytes and bytes as they are', () => {
  assert.equal(encodeParams(undefined).length, 0);
  assert.equal(encodeParams(new Uint8Array(0)).length, 0);
  assert.equal(decodeParams(new Uint8Array(0)), undefined);
  const bytes = Uint8Array.of(0, 255, 123);
  const encoded = encodeParams(Buffer.from(bytes));
  assert.deepEqual(encoded, bytes);
  const copy = encodeParams(bytes);
  bytes[0] = 9;
  assert.equal(copy[0], 0);
});

test('a member that is undefined is left out; 0, false and "" are not (F49)', () => {
  assert.equal(canonical({ b: undefined, a: 1 }), '{"a":1}');
  assert.equal(canonical({ v: 0, b: false, s: '', n: null }), '{"b":false,"n":null,"s":"","v":0}');
  assert.equal(
    canonical({ when: new Date(0), gone: { toJSON: () => undefined } }),
    '{"when":"1970-01-01T00:00:00.000Z"}',
  );
});

test('what JSON cannot say is refused, not guessed', () => {
  const cycle: Record<string, unknown> = {};
  cycle.self = { cycle };
  const values: unknown[] = [
    Number.NaN,
    Number.POSITIVE_INFINITY,
    () => 1,
    Symbol('s'),
    [undefined],
    new Array(2),
    new Map([['a', 1]]),
    new Set([1]),
    /x/,
    new Error('e'),
    new Uint16Array(2),
    new Number(1),
    Promise.resolve(1),
    cycle,
    '\ud800',
    { toJSON: () => undefined },
    {
      get broken() {
        throw new Error('getter');
      },
    },
  ];
  for (const value of values) {
    refused(value);
    refused({ deep: [value] });
  }
  refused({ bytes: new Uint8Array(2) });
  refused({ '\udfff': 1 });
  assert.throws(() => encodeParams({ a: [1, Number.NaN] }), /\/a\/1/);
});

test('nesting ends at the bound, both ways', () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
  assert.equal(canonical(decode(nested(MAX_PARAMS_DEPTH))), nested(MAX_PARAMS_DEPTH));
  for (const depth of [MAX_PARAMS_DEPTH + 1, 1_000_000]) assert.throws(() => decode(nested(depth)), isInvalid);
  let value: unknown = 1;
  for (let depth = 0; depth < MAX_PARAMS_DEPTH; depth++) value = { value };
  assert.equal(encodeParams(value).length, MAX_PARAMS_DEPTH * '{"value":}'.length + 1);
  refused([value]);
});

test('large integers keep every digit; 64-bit neighbours are apart (F86)', () => {
  const values = [2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n, -(2n ** 63n)];
  assert.equal(new Set(values.map(canonical)).size, values.length);
  for (const id of values) {
    const { id: read } = decodeParams(encodeParams({ id })) as { id: bigint | number };
    assert.equal(BigInt(read), id);
    assert.equal(typeof read, Number.isSafeInteger(Number(id)) ? 'number' : 'bigint');
  }
  assert.equal(canonical(7n), canonical(7));
});

test('bytes that are not UTF-8 are refused', () => {
  for (const bytes of [[0xff], [0x22, 0xc3, 0x22], [0x22, 0xed, 0xa0, 0x80, 0x22]])
    assert.throws(() => decodeParams(Uint8Array.from(bytes)), isInvalid);
});

test('numbers at the edge of range', () => {
  assert.throws(() => decode('[1e999]'), isInvalid);
  assert.throws(() => decode('-1e999'), isInvalid);
  const digits = `1${'0'.repeat(400)}`;
  assert.equal(decode(digits), 10n ** 400n);
  assert.equal(canonical(decode(digits)), digits);
});

test('a very long text is read without trouble', () => {
  const long = '\\"ü'.repeat(400_000);
  assert.equal(decodeParams(encodeParams(long)), long);
});

/** Any value that params may have; numbers and bigints of one value count as one, absent members as none. */
const anyParams = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom(null, true, false, 0, -0, 1, '1', '', 'true', 'null', 2 ** 53, 2n ** 53n + 1n, '{}', '[]'),
    fc.string({ unit: 'binary', maxLength: 6 }),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(
      fc.oneof(fc.constantFrom('a', 'b', '10', '9', '__proto__'), fc.string({ unit: 'binary', maxLength: 3 })),
      fc.oneof({ weight: 5, arbitrary: tie('value') }, { weight: 1, arbitrary: fc.constant(undefined) }),
      { maxKeys: 4 },
    ),
  ),
})).value;

const isNumeric = (value: unknown) => typeof value === 'number' || typeof value === 'bigint';
const present = (value: object) => Object.keys(value).filter((name) => Reflect.get(value, name) !== undefined);

/** Whether two params are one request: told by structure, without any text. */
function isSame(a: unknown, b: unknown): boolean {
  if (typeof a === 'object' && a !== null && typeof b === 'object' && b !== null) {
    if (Array.isArray(a) !== Array.isArray(b)) return false;
    const [left, right] = [present(a), present(b)];
    if (left.length !== right.length) return false;
    return left.every((name) => right.includes(name) && isSame(Reflect.get(a, name), Reflect.get(b, name)));
  }
  if (isNumeric(a) && isNumeric(b)) return String(a) === String(b); // 1n and 1 are one; 1, '1' and true are not
  return a === b;
}

/** The same value, built anew with its members in another order. */
function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled);
  if (typeof value !== 'object' || value === null) return value;
  const turned = Object.entries(value)
    .reverse()
    .map(([name, member]) => [name, shuffled(member)]);
  return Object.assign(Object.fromEntries(turned), { absent: undefined });
}

test('identity: equal params are equal bytes, other params are other bytes (F21)', () => {
  fc.assert(
    fc.property(anyParams, anyParams, (a, b) => {
      assert.deepEqual(encodeParams(shuffled(a)), encodeParams(a));
      assert.equal(paramsKey(encodeParams(a)) === paramsKey(encodeParams(b)), isSame(a, b));
      const packed = packParams(a);
      assert.deepEqual(typeof packed === 'string' ? new TextEncoder().encode(packed) : packed, encodeParams(a));
    }),
    { numRuns: 2000 },
  );
  const apart = [
    undefined,
    null,
    0,
    1,
    '1',
    true,
    'true',
    'null',
    '',
    [],
    {},
    [1],
    ['1'],
    [[1]],
    [null],
    { a: 1 },
    { a: '1' },
    { a: null },
    { a: 'x:b=y' },
    { a: 'x', b: 'y' },
    { a: ['b', 1] },
    { a: { b: 1 } },
    { 'a/b': 1 },
    { a: 'x|y' },
    { a: 'x,y' },
    { a: 'x\0y' },
    { a: '"' },
    { a: '' },
    { A: 1 },
    { a: 'é' },
    { a: 'e\u0301' },
  ];
  assert.equal(new Set(apart.map((value) => paramsKey(encodeParams(value)))).size, apart.length);
});

test('what was decoded encodes to the same bytes', () => {
  fc.assert(
    fc.property(anyParams, (value) => {
      const bytes = encodeParams(value);
      assert.deepEqual(encodeParams(decodeParams(bytes)), bytes);
    }),
  );
});

test('reads and refuses what JSON.parse reads and refuses', () => {
  const small = fc.jsonValue({ maxDepth: 4 }).map((value) => JSON.stringify(value, null, 1));
  const change = fc.record({
    at: fc.nat(60),
    text: fc.constantFrom('', '"', '\\', ',', '}', ']', '-', '0', 'e', '\n', '\t', '1'),
  });
  fc.assert(
    fc.property(small, fc.array(change, { maxLength: 2 }), (json, changes) => {
      let changed = json;
      for (const { at, text } of changes) changed = changed.slice(0, at) + text + changed.slice(at + 1);
      fc.pre(changed !== '');
      let expected: unknown;
      let inRange = true;
      try {
        expected = JSON.parse(changed, (_name, value) => {
          inRange &&= typeof value !== 'number' || Number.isFinite(value);
          return value;
        });
      } catch {
        assert.throws(() => decode(changed), isInvalid);
        return;
      }
      if (!inRange) assert.throws(() => decode(changed), isInvalid);
      else assert.equal(JSON.stringify(decode(changed), toNumber), JSON.stringify(expected));
    }),
    { numRuns: 2000 },
  );
});
const toNumber = (_name: string, value: unknown) => (typeof value === 'bigint' ? Number(value) : value);

test('keys are the bytes, one character each', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      assert.deepEqual(keyBytes(paramsKey(bytes)), bytes);
      assert.equal(keyOf(bytes, 0, bytes.length), paramsKey(bytes));
      assert.equal(keyOf(bytes, bytes.length >> 1, bytes.length), paramsKey(bytes.subarray(bytes.length >> 1)));
    }),
  );
  for (const length of [4095, 4096, 4097, 1_000_000]) {
    const bytes = Uint8Array.from({ length }, (_, index) => index * 7);
    const key = paramsKey(bytes);
    assert.equal(key.length, length);
    assert.deepEqual(keyBytes(key), bytes);
  }
  assert.throws(() => keyBytes('€'), isInvalid);
});
