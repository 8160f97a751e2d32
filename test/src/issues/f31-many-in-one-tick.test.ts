import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect as connectProvider } from '@trunkline/publisher';
import { connect } from '@trunkline/subscriber';
import { until } from '../support/wait.js';
import { quiet, Real } from './real.js';

test('F31: a thousand responses, requests and application messages in one tick arrive in order', async (t) => {
  const real = await Real.start(t, [{ code: '100-200' }]);
  const provider = await connectProvider(real.address, quiet);
  provider.provide({ from: 100, to: 200 }, (subscription) => {
    if (typeof subscription.params === 'number') return subscription.params * 2;
    for (let item = 0; item < 1000; item++) subscription.respond(item, { key: 'x'.repeat(item % 300) });
    return undefined;
  });
  const client = await connect(real.address, quiet);
  const got: unknown[] = [];
  client.subscribe(100, {}, (message) => void got.push(message.json()));
  const answers = await Promise.all(Array.from({ length: 1000 }, (_, params) => client.request(101, { params })));
  await until(() => got.length >= 1000, 'all are there');
  assert.deepEqual(
    got,
    Array.from({ length: 1000 }, (_, index) => index),
  );
  assert.deepEqual(
    answers.map((answer) => answer.json()),
    Array.from({ length: 1000 }, (_, index) => index * 2),
  );
  await Promise.all([client.close(), provider.close()]);
});
