import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Parts } from './support.js';

test('F14: the same request twice from one client; each unsubscribe ends its own handle and nothing of others', async () => {
  const parts = await Parts.start([{ code: 100 }]);
  const provider = parts.provider();
  let started = 0;
  let stopped = 0;
  let respond: (body: string) => void = () => {};
  provider.provide(100, (subscription) => {
    started++;
    respond = (body) => subscription.respond(body);
    return () => stopped++;
  });
  const client = parts.client();
  const other = parts.client();
  const got: string[] = [];
  const [one, two, others] = [client, client, other].map((each, index) =>
    each.subscribe(100, { params: { b: 1, a: 2 } }, (message) => void got.push(`${index} ${message.text()}`)),
  );
  await parts.settle();
  await one!.unsubscribe();
  respond('x');
  await parts.settle();
  assert.deepEqual(got.sort(), ['1 x', '2 x']);
  await assert.rejects(one!.unsubscribe(), { code: 'NOT_SUBSCRIBED' });
  await two!.unsubscribe();
  await assert.rejects(two!.unsubscribe(), { code: 'NOT_SUBSCRIBED' });
  await parts.settle();
  respond('y');
  await parts.settle();
  assert.deepEqual([got.at(-1), started, stopped], ['2 y', 1, 0]);
  await others!.unsubscribe();
  await parts.settle();
  assert.deepEqual([started, stopped], [1, 1]);
});
