import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Parts } from './support.js';

const values: Record<string, unknown> = {
  bool: true,
  int: 7,
  negative: -7,
  large: 9007199254740993n,
  double: 1.5,
  text: 'x',
  empty: '',
  bytes: new Uint8Array([1, 2]),
};
const constants = [
  'true',
  '7',
  '-7',
  '1.5',
  '"x"',
  '""',
  'b"x"',
  '7u',
  'null',
  '[1]',
  '{"a": 1}',
  '9223372036854775807',
];
const operators = ['==', '!=', '<', '<=', '>', '>=', '+', '-', '*', '/', '%', '&&', '||', 'in'];

test('F66: no pair of types makes an exception at delivery; who has a failing filter stops nobody', async () => {
  const parts = await Parts.start([{ code: 100 }]);
  parts.made.world.tap = () => {};
  let respondAll = () => {};
  parts.provider().provide(100, (subscription) => {
    respondAll = () => {
      for (const value of [...Object.values(values), undefined]) {
        const json = typeof value === 'bigint' ? `{"v":${value}}` : undefined;
        const plain = value instanceof Uint8Array ? [...value] : value;
        const attrs = value === undefined ? {} : { v: value as never };
        if (json === undefined) subscription.respond({ v: plain }, { attrs });
        else subscription.respond(json, { attrs, json: true });
      }
      for (const body of ['no JSON', new Uint8Array([0xff]), [1], null, 5]) subscription.respond(body);
    };
  });
  const client = parts.client();
  let refused = 0;
  const subscribe = (filter: string) =>
    client
      .subscribe(100, { filter }, () => {})
      .on('error', ({ code }) => {
        assert.equal(code, 'FILTER_INVALID', filter);
        refused++;
      });
  let count = 0;
  for (const field of ['attrs.v', 'body.v', 'key', 'body']) {
    for (const operator of operators) {
      for (const constant of constants) {
        subscribe(`${field} ${operator} ${constant}`);
        subscribe(`(${constant} ${operator} ${field}) == true`);
        count += 2;
      }
    }
    for (const each of [`size(${field}) > 0`, `string(${field}) == "7"`, `int(${field}) == 7`, `${field}.x.y == 1`]) {
      subscribe(each);
      count++;
    }
  }
  const got: unknown[] = [];
  client.subscribe(100, {}, (message) => void got.push(message.sequence));
  await parts.settle();
  respondAll();
  respondAll();
  await parts.settle();
  assert.equal(got.length, 2 * (Object.keys(values).length + 1 + 5));
  assert.ok(refused < count, 'some of them compile');
  assert.ok(parts.made.dispatcher.core.counters.filterErrors > 0);
  assert.equal(parts.made.dispatcher.core.counters.handlerErrors, 0);
  assert.equal(client.state, 'connected');
});
