import assert from 'node:assert/strict';
import { test } from 'node:test';
import { expectLines, linesOfText, minimal, parse, parseText, problemsOfText, shippedBytes } from './helpers.js';

const good = JSON.stringify(minimal, null, 2);

test('F95: a byte order mark and CRLF are taken', () => {
  const text = `\ufeff${new TextDecoder().decode(shippedBytes('demo.json')).replaceAll('\n', '\r\n')}`;
  assert.deepEqual(parseText(text), parseText(shippedBytes('demo.json')));
});

test('F95: UTF-16, UTF-32 and binary files are told apart and refused', () => {
  const wide = (text: string, little: boolean): Uint8Array =>
    Uint8Array.from([...text].flatMap((char) => (little ? [char.charCodeAt(0), 0] : [0, char.charCodeAt(0)])));
  expectLines(linesOfText(Uint8Array.of(0xff, 0xfe, ...wide(good, true))), [/^\$: the file is UTF-16 .*FF FE/]);
  expectLines(linesOfText(Uint8Array.of(0xfe, 0xff, ...wide(good, false))), [/^\$: the file is UTF-16 .*FE FF/]);
  expectLines(linesOfText(Uint8Array.of(0xff, 0xfe, 0, 0, 0x7b, 0, 0, 0)), [/^\$: the file is UTF-32/]);
  expectLines(linesOfText(wide(good, true)), [/NUL bytes.*UTF-16/]);
  expectLines(linesOfText(wide(good, false)), [/NUL bytes.*UTF-16/]);
});

test('bytes that are not UTF-8 are refused with their place', () => {
  const bytes = new TextEncoder().encode('{\n  "listen": ["é?"]\n}');
  bytes[bytes.indexOf(0x3f)] = 0xff;
  assert.deepEqual(problemsOfText(bytes), [
    { path: '$', message: 'the file is not valid UTF-8: byte 18 is FF', line: 2, column: 16 },
  ]);
  expectLines(linesOfText(Uint8Array.of(0xef, 0xbb, 0xbf, 0xc3)), [/byte 3 is C3/]);
});

test('F94: broken JSON is refused with line and column, and nothing of it is used', () => {
  const place = (text: string): string[] =>
    problemsOfText(text).map(({ line, column, message }) => `${line}:${column} ${message}`);
  const withServices = (text: string): string => `{"listen": ["tcp://*:1"],\n "services": ${text}}`;
  expectLines(place(withServices('[{"code": 0x64}]')), [/^2:24 "0x64" is no JSON value/]);
  expectLines(place(withServices('[{"code": 1},]')), ['2:26 trailing comma']);
  expectLines(place(withServices('[{"code": 1,}]')), ['2:25 trailing comma']);
  expectLines(place(withServices('[{"code": 1},,{"code": 2}]')), ['2:27 two commas in a row']);
  expectLines(place(withServices('[{"code": 1} {"code": 2}]')), ['2:27 a comma is expected before this']);
  expectLines(place(withServices('[{"code": 1, "code": 2}]')), ['2:27 the same key is already at line 2, column 16']);
  expectLines(place(withServices('[{"code": 01}]')), [/^2:24 "01" is no JSON value/]);
  expectLines(place(withServices('[{"code": 1.}]')), [/"1\." is no JSON number/]);
  expectLines(place(withServices('[{code: 1}]')), [/^2:16 "code" is no JSON value/]);
  expectLines(place(withServices("[{'code': 1}]")), [/no JSON value/]);
  expectLines(place(withServices('[{"code" 1}]')), [/a colon is expected/]);
  expectLines(place(withServices('[{"code": }]')), [/a value is expected/]);
  expectLines(place(withServices('[{"name": "a\tb", "code": 1}]')), [/control character/]);
  expectLines(place(withServices('[{"name": "\\x", "code": 1}]')), [/wrong escape/]);
  expectLines(place(withServices('[{"name": "\\u12", "code": 1}]')), [/wrong \\u escape/]);
  assert.match(place(withServices('[{"name": "a\n", "code": 1}]'))[0] ?? '', /^2:24 a text without its closing quote/);
  expectLines(place(withServices('[] // later\n')), ['2:17 comments are not allowed in JSON']);
  expectLines(place(withServices('[] /* later')), ['2:17 comments are not allowed in JSON']);
  expectLines(place(withServices('[')), [/ends before a closing \]|value is expected/]);
  expectLines(place(`${good} {}`), [/nothing may follow/]);
  expectLines(place(''), ['1:1 the file is empty']);
  expectLines(place(' \n'), ['1:1 the file is empty']);
});

test('a deeply nested file is refused instead of running out of stack', () => {
  expectLines(linesOfText('['.repeat(200_000)), [/nested more than 100 levels/]);
  expectLines(linesOfText(`${'{"a":'.repeat(150)}1${'}'.repeat(150)}`), [/nested more than 100 levels/]);
});

test('brackets inside texts do not count as nesting', () => {
  const name = '[{'.repeat(60);
  assert.equal(parse({ ...minimal, services: [{ code: 1, name }] }).services[0]?.name, name);
});

test('the keys of the prototype are keys like any other', () => {
  expectLines(linesOfText('{"listen":["tcp://*:1"],"services":[],"__proto__":{"listen":1},"toString":1}'), [
    '$.__proto__: unknown key',
    '$.toString: unknown key',
  ]);
});

test('a syntax error does not hide the faults elsewhere', () => {
  const text = `{
    "listen": [],
    "services": [
      { "code": 0x64, "probeAftr": "2s" },
      { "code": 7, "probeMisses": "3" },
      { "code": 7, },
      { "code": 8, "resendAfter": "1m", "name": "a", "name": "b" },
    ]
  }`;
  expectLines(linesOfText(text), [
    '$.listen: the list is empty',
    /^\$\.services\[0\]\.code: "0x64" is no JSON value/,
    '$.services[0].probeAftr: unknown key; did you mean "probeAfter"?',
    /^\$\.services\[1\]\.probeMisses: must be a whole number/,
    '$.services[2].code: the code 7 is also at $.services[1].code (line 5)',
    /^\$\.services\[2\].*: trailing comma/,
    '$.services[3].name: the same key is already at line 7, column 41',
    /^\$\.services\[3\]\.resendAfter: resendCap \(30s\) is below/,
    /^\$\.services.*: trailing comma/,
  ]);
});

test('many syntax errors are cut short', () => {
  const problems = problemsOfText(`[${'"a" : ,\n'.repeat(500)}]`);
  assert.ok(problems.length >= 10 && problems.length <= 60, String(problems.length));
});
