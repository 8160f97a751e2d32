import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Parts } from './support.js';

const apart: unknown[] = [
  { a: 'x:b=y' },
  { a: 'x', b: 'y' },
  { a: 'x|b|y' },
  { a: 'x,b,y' },
  { 'a:x,b': 'y' },
  { a: 'x\0b' },
  { a: 'x"b' },
  { a: "x'b" },
  { a: 'x\\"b' },
  { a: '' },
  {},
  undefined,
  null,
  '',
  'null',
  '""',
  0,
  '0',
  false,
  'false',
  [],
  [[]],
  [''],
  [null],
  { a: null },
  { a: 0 },
  { a: '0' },
  { a: { b: 1 } },
  { 'a.b': 1 },
  { a: [1] },
  { a: 9007199254740993n },
  { a: 9007199254740992n },
  { a: 18446744073709551615n },
  'e\u0301',
  '\u00e9',
  new Uint8Array([0]),
  new Uint8Array([0, 0]),
  new Uint8Array([0xc2]),
  new Uint8Array([0xe9]),
];

test('F21: different requests are different upstream subscriptions, and their items never cross', async () => {
  const parts = await Parts.start([{ code: 10 }, { code: 101 }, { code: 1011 }]);
  let asked = 0;
  const provider = parts.provider();
  for (const code of [10, 101, 1011]) {
    provider.provide(code, (subscription) => {
      asked++;
      subscription.respond([...subscription.paramsBytes, '@', subscription.code].join(' '));
    });
  }
  const client = parts.client();
  const got: string[][] = [];
  const all = [10, 101, 1011].flatMap((code) => [...apart, 1, 11].map((params) => ({ code, params })));
  for (const { code, params } of all) {
    const texts: string[] = [];
    got.push(texts);
    client.subscribe(code, { params }, (message) => void texts.push(message.text()));
  }
  await parts.settle();
  assert.equal(asked, all.length);
  assert.equal(new Set(got.map((texts) => texts.join())).size, all.length);
  for (const [index, texts] of got.entries()) {
    assert.equal(texts.length, 1);
    assert.ok(texts[0]!.endsWith(`@ ${all[index]!.code}`));
  }
});

test('F21: the same request in other words is the same upstream subscription', async () => {
  const parts = await Parts.start([{ code: 100 }]);
  let asked = 0;
  parts.provider().provide(100, () => void asked++);
  const client = parts.client();
  const same = [
    { a: 1, b: [true, 'x'] },
    { b: [true, 'x'], a: 1 },
    { b: [true, 'x'], a: 1n, c: undefined },
    new TextEncoder().encode('{"a":1,"b":[true,"x"]}'),
  ];
  for (const params of same) client.subscribe(100, { params });
  await parts.settle();
  assert.equal(asked, 1);
});
