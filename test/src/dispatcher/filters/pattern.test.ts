import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FilterCompiler } from '@trunkline/dispatcher';
import fc from 'fast-check';

function finds(pattern: string, text: string): boolean {
  const compiler = new FilterCompiler({ onEvaluationError: () => assert.fail(`error: ${pattern}`) });
  const filter = compiler.acquire(`tag.matches(${JSON.stringify(pattern)})`);
  return filter.matches({ tag: text, key: '', attrs: {}, body: undefined });
}

function reason(pattern: string): string {
  try {
    new FilterCompiler().acquire(`tag.matches(${JSON.stringify(pattern)})`);
  } catch (error) {
    return (error as Error).message;
  }
  assert.fail(`${pattern} is refused`);
}

test('patterns find what RE2 finds', () => {
  for (const [pattern, yes, no] of [
    ['', ['', 'a'], []],
    ['abc', ['abc', 'xabcx'], ['ab', 'ABC', '']],
    ['^abc$', ['abc'], ['xabc', 'abcx', 'abc\n']],
    ['a|b', ['a', 'b'], ['c', '']],
    ['^(a|)$', ['', 'a'], ['b']],
    ['^a*$', ['', 'aaa'], ['ab']],
    ['^a+?$', ['a', 'aa'], ['']],
    ['^a{2,3}$', ['aa', 'aaa'], ['a', 'aaaa']],
    ['^a{2}$', ['aa'], ['a', 'aaa']],
    ['^a{2,}$', ['aa', 'aaaaa'], ['a']],
    ['^a{0}b$', ['b'], ['ab']],
    ['a{,2}', ['a{,2}'], ['a', 'aa']],
    ['^(){1000}$', [''], ['a']],
    ['^.$', ['a', 'é', '😀'], ['', '\n', 'ab']],
    ['(?s)^.$', ['\n'], ['']],
    ['(?m)^b$', ['a\nb\nc', 'b'], ['ab']],
    ['(?i)^Abc[x-z]$', ['aBCX', 'abcz'], ['abcw']],
    ['^(?i:a)b$', ['Ab', 'ab'], ['AB']],
    ['^(?i)a(?-i)b$', ['Ab'], ['AB']],
    ['[^a-c]', ['d', '\n', '😀'], ['abc', '']],
    ['^[]a]+$', [']a'], ['b']],
    ['^[a-]+$', ['a-'], ['b']],
    ['^[\\d\\-x]+$', ['1-x'], ['a']],
    ['^[[:alpha:][:^print:]]$', ['a', '\n'], ['1']],
    ['^\\d\\D\\w\\W\\s\\S$', ['1a_- x'], ['aa_- x']],
    ['\\bword\\b', ['a word.', 'word'], ['words', 'aword']],
    ['\\Bx', ['ax'], ['x', ' x']],
    ['\\Aa\\z', ['a'], ['a\n']],
    ['\\x41\\x{1F600}\\.\\n\\t', ['A😀.\n\t'], ['A😀a\n\t']],
    ['(?P<name>a)(?<other>b)(?:c)', ['abc'], ['ab']],
    ['^[😀-😂]$', ['😁'], ['😃', 'a']],
    ['(a*)*b', ['b', 'aab'], ['aaa']],
    ['x*$', ['', 'a', 'x'], []],
    ['$^', [''], ['a']],
  ] as const) {
    for (const text of yes) assert.equal(finds(pattern, text), true, `${pattern} in ${JSON.stringify(text)}`);
    for (const text of no) assert.equal(finds(pattern, text), false, `${pattern} in ${JSON.stringify(text)}`);
  }
});

test('what the subset does not have is refused with a reason', () => {
  for (const [pattern, expected] of [
    ['(a)\\1', /backreference/],
    ['(?=a)', /lookaround/],
    ['(?!a)', /lookaround/],
    ['(?<=a)b', /lookaround/],
    ['(?<!a)b', /lookaround/],
    ['(?#x)', /unknown kind/],
    ['(?)', /unknown kind/],
    ['(?i-)a', /unknown kind/],
    ['a**', /cannot be repeated/],
    ['a++', /cannot be repeated/],
    ['a{2}{3}', /cannot be repeated/],
    ['*a', /nothing to repeat/],
    ['a|?', /nothing to repeat/],
    ['(a', /not closed/],
    ['a)', /unmatched/],
    ['[a', /not closed/],
    ['[z-a]', /range/],
    ['[\\d-a]', /range/],
    ['[[:what:]]', /no set/],
    ['a{3,2}', /wrong order/],
    ['a{1001}', /count to 1000/],
    ['(a{100}){100}', /too large/],
    ['((((a{9}){9}){9}){9}){9}', /too large/],
    ['\\p{L}', /\\p is not available/],
    ['\\q', /not available/],
    ['a\\', /lone/],
    ['\\x4', /\\x/],
    ['\\x{110000}', /\\x/],
    ['('.repeat(200) + ')'.repeat(200), /groups/],
    ['a'.repeat(1001), /longer/],
    [Array.from({ length: 900 }, (_, i) => String.fromCharCode(0x4e00 + 2 * i)).join(''), /too large/],
  ] as const) {
    assert.match(reason(pattern), expected, pattern);
  }
});

/** Patterns that mean the same to JavaScript; shallow ones, or it does not come back from them. */
const patterns = fc.letrec<{ either: string; sequence: string; repeat: string; atom: string }>((tie) => ({
  either: fc.array(tie('sequence'), { minLength: 1, maxLength: 3 }).map((parts) => parts.join('|')),
  sequence: fc.array(tie('repeat'), { maxLength: 3 }).map((parts) => parts.join('')),
  repeat: fc
    .tuple(tie('atom'), fc.constantFrom('', '', '', '*', '+', '?', '*?', '{2}', '{1,2}', '{2,}'))
    .map(([atom, times]) => (/^(\^|\$|\\b|\\B)$/.test(atom) ? atom : atom + times)),
  atom: fc.oneof(
    { maxDepth: 2, withCrossShrink: true },
    fc.constantFrom('a', 'b', 'c', '.', '[ab]', '[^a]', '\\d', '\\w', '\\W', '^', '$', '\\b', '\\B', '😀', 'é'),
    tie('either').map((inner) => `(${inner})`),
  ),
})).either;

test('property: patterns find what JavaScript finds', () => {
  let found = 0;
  let missed = 0;
  const texts = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '1', ' ', '\n', '😀', 'é'), maxLength: 5 });
  fc.assert(
    fc.property(patterns, fc.array(texts, { minLength: 3, maxLength: 8 }), (pattern, samples) => {
      const expression = new RegExp(pattern, 'u');
      for (const sample of samples) {
        // V8 also looks between the two halves of a character
        const text = pattern.includes('\\B') ? sample.replaceAll('😀', 'é') : sample;
        const expected = expression.test(text);
        if (expected) found++;
        else missed++;
        assert.equal(finds(pattern, text), expected, `${pattern} in ${JSON.stringify(text)}`);
      }
    }),
    { numRuns: 300 },
  );
  assert.ok(found > 100 && missed > 100, `${found} found, ${missed} missed`);
});

test('patterns that blow up elsewhere take linear time: states remembered or not', () => {
  const long = 'a'.repeat(20_000);
  assert.equal(finds('^(a+)+$', `${long}!`), false);
  assert.equal(finds('(a*)*(a|aa)*[^a]b', long), false);
  assert.equal(finds('(x+x+)+y', 'x'.repeat(20_000)), false);
  // the 12th character from the end: more states than are remembered
  const hostile = '^(a|b)*a(a|b){11}$';
  let text = '';
  for (let i = 1; text.length < 20_000; i++) text += i.toString(2).replaceAll('0', 'a').replaceAll('1', 'b');
  for (const tail of ['a', 'b']) {
    const sample = `${text}${tail}${'ab'.repeat(5)}b`;
    assert.equal(finds(hostile, sample), new RegExp(hostile).test(sample));
  }
});
