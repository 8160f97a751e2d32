import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Parts } from './support.js';

test('F67: a field that some items lack is no match and no error; whether it is there can be asked, also nested', async () => {
  const parts = await Parts.start([{ code: 100 }]);
  parts.provider().provide(100, (subscription) => {
    const bodies = [{}, { a: null }, { a: {} }, { a: { b: null } }, { a: { b: 0 } }, { a: { b: 1 } }, [], 'text', 5];
    for (const [index, body] of bodies.entries()) {
      subscription.respond(body, { key: `${index}`, attrs: index % 2 === 0 ? { n: index } : {} });
    }
  });
  const client = parts.client();
  const matching: Record<string, string[]> = {
    'body.a.b >= 0': ['4', '5'],
    'has(body.a)': ['1', '2', '3', '4', '5'],
    'exists(body.a)': ['1', '2', '3', '4', '5'],
    'exists(body.a.b)': ['3', '4', '5'],
    'exists(body.a.b.c)': [],
    'exists(attrs.n)': ['0', '2', '4', '6', '8'],
    '!exists(attrs.n)': ['1', '3', '5', '7'],
    'attrs.n > 3': ['4', '6', '8'],
    'attrs.unknown == 1': [],
    'attrs.unknown == 1 || key == "1"': ['1'],
  };
  const got: Record<string, string[]> = {};
  for (const filter of Object.keys(matching)) {
    const keys: string[] = [];
    got[filter] = keys;
    client.subscribe(100, { filter }, (message) => void keys.push(message.key));
  }
  await parts.settle();
  assert.deepEqual(got, matching);
  assert.equal(parts.made.dispatcher.core.counters.handlerErrors, 0);
});

test('F67: no filter, "" and blanks are one lane', async () => {
  const parts = await Parts.start([{ code: 100 }]);
  parts.provider().provide(100, () => {});
  const filters = [undefined, '', ' ', '\t\n '];
  for (const filter of filters) parts.client().subscribe(100, filter === undefined ? {} : { filter });
  const raw = await parts.made.peer();
  for (const [index, filter] of ['', '  '].entries()) raw.request(100, index + 1, { filter });
  await parts.settle();
  const [stream, ...others] = [...parts.made.dispatcher.registry.allStreams()];
  assert.deepEqual([others.length, stream!.laneCount, stream!.members], [0, 1, 5]);
  assert.equal(parts.made.dispatcher.core.filters.size, 0);
});
