import assert from 'node:assert/strict';
import { FilterCompiler, FilterIndex, type FilterInput } from '@trunkline/dispatcher';
import { type AttributeValue, TrunklineError } from '@trunkline/proto';

const words = ['', 'a', 'b', 'ACME', 'é', 'e\u0301', 'straße', '😀', '\ue000', '10', 'true', 'aaaaab'];
const attributes: readonly AttributeValue[] = [
  ...words,
  0,
  1,
  -1,
  2,
  100.5,
  -0,
  Number.NaN,
  Infinity,
  2 ** 53,
  9007199254740993n,
  -(2n ** 63n),
  2n ** 63n - 1n,
  2n ** 64n - 1n,
  true,
  false,
  new Uint8Array(),
  Uint8Array.of(1, 255),
];
const names = ['x', 'y', 'constructor', '__proto__', 'toString'];
const literals = [
  '0',
  '1',
  '-1',
  '2.0',
  '100.5',
  '3u',
  'true',
  'null',
  '""',
  '"a"',
  '"ACME"',
  'b"\\x01"',
  '[1, 2]',
  '{"a": 1}',
];
const operators = ['==', '!=', '<', '<=', '>', '>=', '+', '-', '*', '/', '%', 'in', '&&', '||'];
const fragments = [
  ...operators,
  '(',
  ')',
  '[',
  ']',
  '{',
  '}',
  '.',
  ',',
  '?',
  ':',
  '!',
  '"',
  "'",
  '\\',
  '//',
  '\n',
  '0x',
  '1e',
  'u',
  '😀',
];

type Random = () => number;

/** A random source that a seed repeats (xorshift). */
export function seededRandom(seed: number): Random {
  let state = (seed ^ 0x9e3779b9) | 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

function pick<T>(random: Random, from: readonly T[]): T {
  return from[Math.floor(random() * from.length)]!;
}

function operand(random: Random, depth: number): string {
  const name = pick(random, names);
  switch (Math.floor(random() * (depth > 0 ? 12 : 6))) {
    case 0:
      return pick(random, ['tag', 'key']);
    case 1:
      return `attrs.${name}`;
    case 2:
      return `body.${name}`;
    case 3:
      return `body.${name}.${pick(random, names)}`;
    case 4:
      return `attrs[${pick(random, ['"x"', 'key', 'tag'])}]`;
    case 5:
      return pick(random, literals);
    case 6:
      return `size(${operand(random, depth - 1)})`;
    case 7:
      return `${pick(random, ['string', 'int', 'double', 'uint', 'dyn', 'type', 'bool', 'bytes'])}(${operand(random, depth - 1)})`;
    case 8:
      return `body.${name}.map(i, ${operand(random, depth - 1)})`;
    case 9:
      return `(${condition(random, depth - 1)} ? ${operand(random, depth - 1)} : ${operand(random, depth - 1)})`;
    default:
      return `(${operand(random, depth - 1)} ${pick(random, operators)} ${operand(random, depth - 1)})`;
  }
}

function condition(random: Random, depth: number): string {
  const name = pick(random, names);
  switch (Math.floor(random() * (depth > 0 ? 12 : 5))) {
    case 0:
    case 1:
      return `${pick(random, ['tag', 'key'])} == "${pick(random, words)}"`;
    case 2:
      return `has(${pick(random, ['attrs', 'body'])}.${name})`;
    case 3:
      return `tag.matches("${pick(random, ['^a+b$', '(a|b)*', 'é', '[^a]', '(a+)+$', '.{2,5}'])}")`;
    case 4:
      return `key.${pick(random, ['startsWith', 'endsWith', 'contains'])}("${pick(random, words)}")`;
    case 5:
      return `body.${name}.${pick(random, ['all', 'exists', 'exists_one'])}(i, ${condition(random, depth - 1)})`;
    case 6:
      return `!(${condition(random, depth - 1)})`;
    case 7:
    case 8:
      return `${condition(random, depth - 1)} && ${condition(random, depth - 1)}`;
    case 9:
      return `(${condition(random, depth - 1)} || ${condition(random, depth - 1)})`;
    default:
      return `${operand(random, depth - 1)} ${pick(random, operators)} ${operand(random, depth - 1)}`;
  }
}

/** A filter that mostly compiles. */
export function randomFilter(random: Random): string {
  return random() < 0.05 ? pick(random, ['', ' ']) : condition(random, 3);
}

function randomJson(random: Random, depth: number): unknown {
  const kind = Math.floor(random() * (depth > 0 ? 4 : 2));
  if (kind === 0) return pick(random, [null, true, false, ...words]);
  if (kind === 1) return pick(random, [0, 1, -1, 2, 100.5, 2 ** 53, 1e300]);
  const items = Array.from({ length: Math.floor(random() * 4) }, () => randomJson(random, depth - 1));
  return kind === 2 ? items : Object.fromEntries(items.map((item) => [pick(random, names), item]));
}

export function randomInput(random: Random): FilterInput {
  const attrs = Object.fromEntries(names.filter(() => random() < 0.5).map((name) => [name, pick(random, attributes)]));
  const body = random() < 0.2 ? undefined : randomJson(random, 3);
  return { tag: pick(random, words), key: pick(random, words), attrs, body };
}

/** Filters of every kind of brokenness: each compiles or is refused with a position, and none ever throws on a message. */
export function fuzzFilter(random: Random, rounds: number): void {
  const compiler = new FilterCompiler();
  const index = new FilterIndex<string>();
  for (let round = 0; round < rounds; round++) {
    let text = randomFilter(random);
    for (let edits = Math.floor(random() * 4); edits > 0; edits--) {
      const at = Math.floor(random() * (text.length + 1));
      text = text.slice(0, at) + pick(random, fragments) + text.slice(at + Math.floor(random() * 3));
    }
    try {
      const filter = compiler.acquire(text);
      const input = randomInput(random);
      const expected = filter.matches(input);
      index.add(filter, text);
      let found = false;
      index.match(input, () => {
        found = true;
      });
      assert.equal(found, expected, text);
      index.remove(filter, text);
      compiler.release(filter);
    } catch (error) {
      assert.ok(error instanceof TrunklineError, `${text}: ${error}`);
      assert.equal(error.code, 'FILTER_INVALID', text);
      assert.ok(error.position! >= 1 && error.position! <= text.length + 1, `${text}: position ${error.position}`);
    }
    assert.equal(index.size, 0);
    assert.equal(compiler.size, 0);
  }
}
