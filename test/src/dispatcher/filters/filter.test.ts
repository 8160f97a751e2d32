import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FilterCompiler, type FilterInput, parseJsonBody } from '@trunkline/dispatcher';
import { type AttributeValue, decodeMeta, encodeMeta, TrunklineError } from '@trunkline/proto';
import fc from 'fast-check';
import { fuzzFilter, seededRandom } from '../../fuzz/filter.js';

function input(more: Partial<FilterInput> = {}): FilterInput {
  return { tag: '', key: '', attrs: {}, body: undefined, ...more };
}

/** Whether the message matches, or 'error' when the evaluation was counted as failed. */
function evaluate(text: string, message: FilterInput = input()): boolean | 'error' {
  let errors = 0;
  const compiler = new FilterCompiler({ onEvaluationError: () => errors++ });
  const matched = compiler.acquire(text).matches(message);
  if (errors === 0) return matched;
  assert.equal(matched, false);
  assert.equal(errors, 1);
  return 'error';
}

function check(message: FilterInput, expected: Readonly<Record<string, boolean | 'error'>>): void {
  for (const [text, result] of Object.entries(expected)) assert.equal(evaluate(text, message), result, text);
}

function refusal(text: string): TrunklineError {
  let error: unknown;
  try {
    new FilterCompiler().acquire(text);
  } catch (caught) {
    error = caught;
  }
  assert.ok(error instanceof TrunklineError, `${text} is refused`);
  assert.equal(error.code, 'FILTER_INVALID');
  return error;
}

test('no filter, "" and spaces are one filter that matches everything (F67)', () => {
  const compiler = new FilterCompiler();
  const none = compiler.acquire('');
  assert.equal(compiler.acquire(' '), none);
  assert.equal(compiler.acquire('\n\t'), none);
  assert.equal(none.text, '');
  assert.equal(none.matches(input()), true);
  assert.equal(compiler.size, 1);
});

test('equal filters compile once and go with their last holder', () => {
  const compiler = new FilterCompiler();
  const first = compiler.acquire('attrs.x > 1');
  assert.equal(compiler.acquire(' attrs.x > 1 '), first);
  assert.notEqual(compiler.acquire('attrs.x > 2'), first);
  assert.equal(compiler.size, 2);
  compiler.release(first);
  assert.equal(compiler.size, 2);
  compiler.release(first);
  assert.equal(compiler.size, 1);
  assert.throws(() => compiler.release(first), { code: 'STATE_INVALID' });
  assert.notEqual(compiler.acquire('attrs.x > 1'), first);
});

test('a bad filter is refused with reason and position', () => {
  for (const [text, position, reason] of [
    ['tag ==', 7, /EOF/],
    ['  tag == 1', 3, /string == int/],
    ['tag', 1, /must give bool.*string/],
    ['size(tag)', 1, /must give bool/],
    ['foo == 1', 1, /foo/],
    ['tag == "a" && foo', 15, /foo/],
    ['tag.name', 5, /index/],
    ['"x', 1, /Unterminated/],
    ['attrs.x.unknown() == 1', 1, /unknown/],
    ['timestamp("2020-01-01T00:00:00Z") == attrs.x', 1, /timestamp.*not available/],
    ['cel.bind(x, 1, x == 1)', 1, /bind/],
    ['attrs.x.split("a") == ["b"]', 1, /split/],
    ['attrs.x == 9223372036854775808', 12, /64 bits/],
    ['tag.matches(key)', 13, /literal/],
    ['tag.matches("a**")', 16, /repeat/],
    ['tag.matches("(a)\\\\1")', 17, /backreference/],
    ['body.a.all(x, x.all(y, y.all(z, z)))', 24, /nested/],
    ['body.a[?0] == 1', 8, /QUESTION/],
    ['x'.repeat(5000), 4097, /4096/],
  ] as const) {
    const error = refusal(text);
    assert.equal(error.position, position, `${text}: ${error.message}`);
    assert.match(error.message, reason);
  }
  assert.throws(() => new FilterCompiler({ maxLength: 5 }).acquire('tag == ""'), { code: 'FILTER_INVALID' });
  assert.throws(() => new FilterCompiler().acquire(5 as unknown as string), { code: 'FILTER_INVALID' });
});

test('deep and large filters are refused, long chains are not', () => {
  for (const text of [
    `${'!'.repeat(3000)}true`,
    `${'('.repeat(1000)}true${')'.repeat(1000)}`,
    `attrs.v ${'+ 1 '.repeat(900)} == 1`,
    `${'['.repeat(200)}${']'.repeat(200)} == body`,
    `${'true ? '.repeat(200)}true${': true'.repeat(200)}`,
  ]) {
    assert.ok(refusal(text).position! >= 1, text.slice(0, 20));
  }
  assert.equal(evaluate(Array(200).fill('key == "b"').concat('key == "a"').join('||'), input({ key: 'a' })), true);
  assert.equal(evaluate(Array.from({ length: 300 }, (_, i) => `tag!="${i}"`).join('&&')), true);
});

test('zero, false, "" and empty bytes are values like others (F49)', () => {
  const sent = encodeMeta({ attrs: { v: 0, b: false, s: '', e: new Uint8Array(), d: -0 } });
  const attrs = decodeMeta(sent, 0, sent.length).attrs;
  check(input({ attrs }), {
    'attrs.v == 0': true,
    'attrs.v > -1': true,
    'attrs.v < 1': true,
    'attrs.b == false': true,
    '!attrs.b': true,
    'attrs.s == ""': true,
    'attrs.e == b""': true,
    'attrs.d == 0': true,
    'has(attrs.v) && has(attrs.b) && has(attrs.s) && has(attrs.e)': true,
    'has(attrs.w)': false,
  });
});

test('an absent field is no match and no error; has() and exists() ask for it (F67)', () => {
  const message = input({ attrs: { y: 1 }, body: { a: { b: null, c: [1] } } });
  check(message, {
    'attrs.x > 1': false,
    '!(attrs.x > 1)': false,
    'attrs.x != 1': false,
    'attrs.x': false,
    'attrs.x > 1 || attrs.y == 1': true,
    'attrs.y == 1 || attrs.x > 1': true,
    'attrs.x > 1 && attrs.y == 2': false,
    '!(attrs.x > 1 && attrs.y == 2)': true,
    'has(attrs.x)': false,
    '!has(attrs.x)': true,
    'has(attrs.y)': true,
    'exists(attrs.y)': true,
    'exists(attrs["x"])': false,
    'has(body.a.b)': true,
    'has(body.a.x)': false,
    'has(body.x.y.z)': false,
    'has(body.a.b.c)': false,
    'exists(body.a.c[0])': true,
    'exists(body.a.c[1])': false,
    'exists(body.a.c[-1])': false,
    'body.a.c[1] == 1': false,
    'body.a.b == null': true,
    '"y" in attrs': true,
    '"x" in attrs': false,
    'attrs.x ? true : true': false,
    'size(attrs.x) > 0': false,
    'attrs.x.startsWith("a")': false,
    'attrs.x + 1 > 0': false,
    '-attrs.x < 0': false,
    '[attrs.x] == [1]': false,
    'body.a.c.exists(i, i == attrs.x)': false,
    'body.a.c.exists(i, i == attrs.x || i == 1)': true,
    'body.x.all(i, i == 1)': false,
  });
  check(input(), { 'body.x == 1': false, 'has(body.x)': false, 'body == null': false, 'exists(body)': false });
});

test('nothing of a prototype is a field', () => {
  for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'length']) {
    check(input({ attrs: {}, body: {} }), {
      [`has(attrs.${name})`]: false,
      [`has(body.${name})`]: false,
      [`attrs.${name} == attrs.${name}`]: false,
      [`exists(body["${name}"])`]: false,
      [`"${name}" in body`]: false,
      [`exists({"a": 1}["${name}"])`]: false,
    });
    const body: unknown = JSON.parse(`{"${name}": 5}`);
    check(input({ body }), { [`body.${name} == 5`]: true, 'size(body) == 1': true, 'body == {}': false });
  }
  check(input({ body: [1] }), { 'has(body.length)': false, 'exists(body["length"])': false });
});

test('numbers compare by value across int, uint and double', () => {
  const attrs = {
    i: 101,
    d: 100.5,
    big: 2n ** 63n - 1n,
    small: -(2n ** 63n),
    u: 2n ** 64n - 1n,
    odd: 9007199254740993n,
  };
  check(input({ attrs, body: { i: 101, d: 100.5, one: 1 } }), {
    'attrs.i > 100.0': true,
    'attrs.d > 100': true,
    'attrs.i == 101.0': true,
    'attrs.i == 101u': true,
    'attrs.i != 101.0': false,
    'attrs.d == 100': false,
    'attrs.big == 9223372036854775807': true,
    'attrs.big == 9223372036854775806': false,
    'attrs.big < 9223372036854775807.0': true,
    'attrs.small == -9223372036854775808': true,
    'attrs.u == 18446744073709551615u': true,
    'attrs.u > attrs.big': true,
    'attrs.odd == 9007199254740993': true,
    'attrs.odd == 9007199254740992': false,
    'attrs.odd > 9007199254740992.0': true,
    '1 == 1.0 && 1u == 1 && 1u == 1.0 && 2 > 1.5 && 1u < 2': true,
    'body.i > 100.0 && body.d > 100 && body.i == 101u': true,
    'attrs.i in [100.0, 101.0]': true,
    '[1, 2] == [1, 2]': true,
    '[body.one] == [1.0]': true,
    '{1: "a"}[body.one] == "a"': true,
    '{"a": 1} == {"a": 1}': true,
    '{"a": dyn(1)} == {"a": dyn(1.0)}': true,
    'exists([5][dyn(0.5)])': false,
    'exists([5][dyn(0.0)]) && exists([5][dyn(0u)])': true,
  });
});

test('integers of a JSON body are exact', () => {
  const read = (json: string) => parseJsonBody(new TextEncoder().encode(json));
  const body = read(
    '{"id": 9007199254740993, "u": 18446744073709551615, "s": "9007199254740993", "d": 1234567890.12345678901}',
  );
  check(input({ body }), {
    'body.id == 9007199254740993': true,
    'body.id == 9007199254740992': false,
    'body.id + 1 == 9007199254740994': true,
    'body.u == 18446744073709551615u': true,
    'body.s == "9007199254740993"': true,
    'body.d > 1234567890': true,
  });
  assert.deepEqual(read('[1, 2.5, null]'), [1, 2.5, null]);
  assert.deepEqual(read('[-9223372036854775808]'), [-(2n ** 63n)]);
  for (const wrong of ['', '{', '[9007199254740993', '01234567890123456']) assert.equal(read(wrong), undefined, wrong);
  assert.equal(parseJsonBody(Uint8Array.of(255)), undefined);
  const deep = read(`${'['.repeat(100)}9007199254740993${']'.repeat(100)}`);
  assert.deepEqual((deep as unknown[]).flat(100), [9007199254740992]);
});

test('arithmetic is exact for integers and fails beyond 64 bits; a double makes a double', () => {
  const attrs = { i: 7, d: 2.5, whole: 2, big: 2n ** 63n - 1n, u: 2n ** 63n, max: Number.MAX_SAFE_INTEGER };
  check(input({ attrs }), {
    'attrs.i / 2 == 3': true,
    '-attrs.i / 2 == -3': true,
    'attrs.i % 2 == 1': true,
    'attrs.i / 2.0 == 3.5': true,
    'attrs.i * attrs.d == 17.5': true,
    'attrs.i * 1.0 / 2 == 3.5': true,
    '(attrs.whole * 1.5) / 2 == 1.5': true,
    '[attrs.whole * 1.5][0] / 2 == 1.5': true,
    'double(attrs.i) / 2 == 3.5': true,
    'attrs.big - 1 == 9223372036854775806': true,
    'attrs.big + attrs.big > 0': true,
    'attrs.big * 3 > 0': 'error',
    'attrs.u + attrs.u > 0': 'error',
    'attrs.max + 1 == 9007199254740992': true,
    'attrs.max * 3 == 27021597764222973': true,
    'attrs.i / 0 == 0': 'error',
    'attrs.i % 0 == 0': 'error',
    'attrs.d / 0 > 1': true,
    'attrs.d % 2 == 0.5': 'error',
    '-attrs.u < 0': 'error',
    '-(-9223372036854775808) > 0': 'error',
    'type(attrs.i) == int && type(attrs.d) == double && type(5.0) == double && type(attrs.u) == uint': true,
    'type(attrs.i * 1.0) == double': true,
    'attrs.i + "a" == "7a"': 'error',
    '3u - 4u == 0u': 'error',
    '3u + 4u == 7u': true,
  });
});

test('NaN equals nothing and has no order; -0 is 0', () => {
  check(input({ attrs: { n: Number.NaN, z: -0 } }), {
    'attrs.n == attrs.n': false,
    'attrs.n != attrs.n': true,
    'attrs.n < 1': false,
    'attrs.n >= 1': false,
    'attrs.n <= attrs.n': false,
    'attrs.z == 0': true,
    'attrs.z < 0': false,
    'attrs.z == 0.0': true,
    '-attrs.z == 0': true,
  });
});

const operators = ['==', '!=', '<', '<=', '>', '>=', '+', '-', '*', '/', '%', 'in', '&&', '||'];

test('every operator with every pair of types: never an exception, others are not disturbed (F66)', () => {
  const values: Record<string, AttributeValue> = {
    bool: true,
    int32: 5,
    int64: 2n ** 62n,
    uint64: 2n ** 63n,
    double: 1.5,
    nan: Number.NaN,
    string: 'a',
    bytes: Uint8Array.of(1),
  };
  const body = { ...values, list: [1], map: { a: 1 }, none: null };
  const operands = [...Object.keys(values).map((name) => `attrs.${name}`), 'attrs.absent'];
  operands.push('body.list', 'body.map', 'body.none', 'body.absent', 'tag', '1u', '2.0', 'null');
  for (const operator of operators) {
    for (const left of operands) {
      for (const right of operands) {
        const text = `dyn(${left}) ${operator} dyn(${right})`;
        for (const [filter, other] of [
          [`(${text}) == true || tag == "a"`, true],
          [`(${text}) == true && tag == "b"`, false],
        ] as const) {
          assert.equal(evaluate(filter, input({ tag: 'a', attrs: values, body })), other, filter);
        }
      }
    }
  }
  const mirrored = { '==': '==', '!=': '!=', '<': '>', '<=': '>=' };
  const message = input({ attrs: values, body });
  for (const left of operands) {
    for (const right of operands) {
      for (const [operator, mirror] of Object.entries(mirrored)) {
        const text = `dyn(${left}) ${operator} dyn(${right})`;
        assert.equal(evaluate(text, message), evaluate(`dyn(${right}) ${mirror} dyn(${left})`, message), text);
      }
      const known = !left.includes('absent') && !right.includes('absent');
      const equal = evaluate(`dyn(${left}) == dyn(${right})`, message);
      assert.equal(evaluate(`dyn(${left}) != dyn(${right})`, message), known && !equal, `${left} != ${right}`);
    }
  }
  check(message, {
    'attrs.bool < attrs.string': 'error',
    'attrs.bool == attrs.string': false,
    'attrs.bool != attrs.string': true,
    'attrs.bool < true': false,
    'attrs.string > 1': 'error',
    'attrs.bytes < b"\\x02"': true,
    'attrs.bytes + b"\\x02" == b"\\x01\\x02"': true,
    'body.list < body.list': 'error',
    'body.none > 0': 'error',
    'body.none == null': true,
    'attrs.int32 && true': 'error',
    'attrs.int32': 'error',
    'attrs.bool': true,
    '!attrs.int32': 'error',
    '"a" in attrs.string': 'error',
    'attrs.string.startsWith(attrs.int32)': 'error',
    'attrs.int32 ? true : false': 'error',
    'body.list + body.list == [1, 1]': true,
  });
});

test('text is compared by code points, exactly (F69)', () => {
  const attrs = { Price: 1, price: 2, nfc: '\u00e9', nfd: 'e\u0301', street: 'straße', astral: '😀', last: '\uffff' };
  check(input({ tag: 'X-Trace', key: 'STRASSE', attrs }), {
    'tag == "X-Trace"': true,
    'tag == "x-trace"': false,
    'attrs.Price == 1 && attrs.price == 2': true,
    'has(attrs.PRICE)': false,
    'attrs.nfc == attrs.nfd': false,
    'attrs.nfc == "\\u00e9"': true,
    'key == "straße"': false,
    'attrs.street.upperAscii() == "STRAßE"': true,
    'tag.lowerAscii() == "x-trace"': true,
    'size(attrs.astral) == 1 && attrs.nfd.size() == 2': true,
    'attrs.astral > attrs.last': true,
    'attrs.last < attrs.astral': true,
    'attrs.astral.matches("^.$")': true,
  });
});

test('functions and macros', () => {
  const body = { list: [1, 2, 3], words: ['a', 'bb'], map: { x: 1, y: 2 }, mixed: [1, 'a', null] };
  check(
    input({ tag: 'trade', key: 'ACME', attrs: { s: '12', b: Uint8Array.of(104, 105), bad: Uint8Array.of(255) }, body }),
    {
      'tag.startsWith("tr") && tag.endsWith("de") && tag.contains("ad")': true,
      'tag.contains("x")': false,
      'size(body.list) == 3 && body.map.size() == 2 && size(attrs.b) == 2': true,
      'size(1 == 1 ? dyn(5) : dyn(6)) == 1': 'error',
      'key in ["AB", "ACME"]': true,
      'attrs.s in ["AB", "ACME"]': false,
      '2 in body.list && !(5 in body.list)': true,
      'key in {"ACME": 1}': true,
      'body.list.all(i, i > 0)': true,
      'body.list.all(i, i > 1)': false,
      'body.list.exists(i, i == 3)': true,
      'body.list.exists_one(i, i > 2)': true,
      'body.list.exists_one(i, i > 1)': false,
      'body.list.filter(i, i > 1) == [2, 3]': true,
      'body.list.map(i, i * 2) == [2, 4, 6]': true,
      'body.list.map(i, i > 1, i * 2) == [4, 6]': true,
      'body.map.all(k, body.map[k] > 0)': true,
      'body.list.exists(i, body.words.exists(w, size(w) == i))': true,
      'body.mixed.exists(i, i > 0)': true,
      'body.mixed.all(i, i > 0)': 'error',
      'body.mixed.exists_one(i, i > 0)': 'error',
      'body.mixed.filter(i, i > 0) == [1]': 'error',
      'body.mixed.map(i, i + 1) == [1]': 'error',
      'body.mixed.map(i, i > 0, i) == [1]': 'error',
      'dyn(tag).all(i, true)': 'error',
      'int(attrs.s) == 12 && double("1.5") == 1.5 && uint("3") == 3u && string(12) == attrs.s': true,
      'int("x") == 1': 'error',
      'int(2.9) == 2 && int(1e300) == 1': 'error',
      'uint(-1) == 1u': 'error',
      'double("nan") == 1.0': false,
      'double("-inf") < 0 && double("Infinity") > 0': true,
      'string(1.5) == "1.5" && string(true) == "true" && string(attrs.b) == "hi"': true,
      'string(attrs.bad) == ""': 'error',
      'string(5.0) == "5" && string(double("inf")) == "+Inf"': true,
      'bool("true") && !bool("f")': true,
      'bool("x")': 'error',
      'bytes(tag) == b"trade"': true,
      'type(tag) == string && type(body.list) == list && type(body.map) == map && type(null) == null_type': true,
      'type(type(tag)) == type && type(true) == bool && type(attrs.b) == bytes': true,
      'tag == "trade" ? key == "ACME" : false': true,
      '{"a": 1, key: 2}["ACME"] == 2': true,
      '{"a": 1, "a": 2}["a"] == 2': 'error',
      'attrs.s.matches("^\\\\d+$")': true,
      'body.list.matches("a")': 'error',
    },
  );
});

test('the work of one evaluation is bounded', () => {
  const list = Array.from({ length: 3000 }, (_, i) => i);
  const long = 'a'.repeat(65536);
  check(input({ tag: long, attrs: { half: `b${'a'.repeat(32768)}` }, body: { list, long } }), {
    'body.list.exists(i, i == 2999)': true,
    'body.list.all(i, body.list.all(j, i + j >= 0))': 'error',
    'body.list.exists(i, tag.contains(attrs.half))': 'error',
    'tag.matches("(a+)+$")': true,
    'tag.matches("(a|aa)+b")': false,
    'body.list.map(i, tag + tag).size() == 1': 'error',
    'body.list.all(i, body.list == body.list)': true,
    'body.list.all(i, body.list == body.list.map(x, x))': 'error',
  });
});

test('the body is looked at only by a filter that names it', () => {
  let looks = 0;
  const message = {
    ...input({ tag: 'a' }),
    get body() {
      looks++;
      return { x: 1 };
    },
  };
  const compiler = new FilterCompiler();
  assert.equal(compiler.acquire('tag == "a"').usesBody, false);
  assert.equal(compiler.acquire('tag == "a"').matches(message), true);
  assert.equal(looks, 0);
  const filter = compiler.acquire('tag == "b" && body.x == 1');
  assert.equal(filter.usesBody, true);
  assert.equal(filter.matches(message), false);
  assert.equal(looks, 0);
  assert.equal(compiler.acquire('body.x == 1').matches(message), true);
  assert.ok(looks > 0);
});

test('a body getter that throws is an evaluation error, and the filter works on', () => {
  const errors: string[] = [];
  const filter = new FilterCompiler({ onEvaluationError: (text) => errors.push(text) }).acquire('body.x == 1');
  const broken = {
    ...input(),
    get body(): unknown {
      throw new Error('no');
    },
  };
  assert.equal(filter.matches(broken), false);
  assert.deepEqual(errors, ['body.x == 1']);
  assert.equal(filter.matches(input({ body: { x: 1 } })), true);
});

test('the indexed equality is taken out of the conjunction', () => {
  const compiler = new FilterCompiler();
  for (const [text, index, rest] of [
    ['key == "X"', { field: 'key', value: 'X' }, false],
    ['"X" == tag', { field: 'tag', value: 'X' }, false],
    ['tag == "T" && key == "X"', { field: 'key', value: 'X' }, true],
    ['attrs.a > 1 && (key == "X" && attrs.b > 1)', { field: 'key', value: 'X' }, true],
    ['key == "X" || tag == "T"', undefined, true],
    ['!(key == "X")', undefined, true],
    ['key != "X"', undefined, true],
    ['key == tag', undefined, true],
    ['', undefined, false],
  ] as const) {
    const filter = compiler.acquire(text);
    assert.deepEqual(filter.index, index, text);
    assert.equal(filter.residual !== undefined, rest, text);
  }
});

test('fuzz: a filter compiles or is refused with a position, and never throws on a message', () => {
  fc.assert(
    fc.property(fc.integer(), (seed) => fuzzFilter(seededRandom(seed), 20)),
    { numRuns: 300 },
  );
});
