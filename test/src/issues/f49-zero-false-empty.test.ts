import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Parts } from './support.js';

const matching = [
  'body.v == 0',
  'body.v > -1',
  'body.v == 0.0',
  'body.b == false',
  '!body.b',
  'body.s == ""',
  'has(body.v) && has(body.b) && has(body.s)',
  'attrs.v == 0',
  'attrs.v > -1',
  'attrs.b == false',
  'attrs.s == ""',
  'has(attrs.v) && has(attrs.b) && has(attrs.s)',
  'key == "" && tag == ""',
];
const others = [
  'body.v != 0',
  'body.b',
  'body.s != ""',
  'attrs.v < 0',
  'attrs.b',
  'has(body.absent)',
  'has(attrs.absent)',
];

test('F49: zero, false and "" are values: in filters, in attributes and in the body as JSON', async () => {
  const parts = await Parts.start([{ code: 100, keep: 'last' }]);
  const item = { v: 0, b: false, s: '' };
  parts.provider().provide(100, (subscription) => {
    subscription.respond(item, { key: '', tag: '', attrs: item });
  });
  const client = parts.client();
  const got = new Map<string, unknown[]>();
  for (const filter of ['', ...matching, ...others]) {
    const items: unknown[] = [];
    got.set(filter, items);
    client.subscribe(100, { filter }, (message) => void items.push(message.json(), { ...message.attrs }));
  }
  await parts.settle();
  for (const filter of ['', ...matching]) assert.deepEqual(got.get(filter), [item, item], filter);
  for (const filter of others) assert.deepEqual(got.get(filter), [], filter);
  assert.equal(parts.made.dispatcher.core.counters.filterErrors, 0);
});

test('F49: a param that is 0, false or "" is another request than one without it', async () => {
  const parts = await Parts.start([{ code: 100 }]);
  const asked: unknown[] = [];
  parts.provider().provide(100, ({ params }) => void asked.push(params));
  const client = parts.client();
  const all = [{ v: 0 }, {}, { v: false }, { v: '' }, { v: null }, undefined, 0, false, '', null];
  for (const params of all) client.subscribe(100, { params });
  await parts.settle();
  assert.deepEqual(asked, all);
});
