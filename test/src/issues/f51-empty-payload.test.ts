import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect as connectProvider } from '@trunkline/publisher';
import { connect } from '@trunkline/subscriber';
import type { SubscribeOptions } from '@trunkline/subscriber/core';
import { until } from '../support/wait.js';
import { quiet, Real } from './real.js';
import { Parts } from './support.js';

const ways: Record<string, SubscribeOptions> = {
  plain: {},
  'through a filter': { filter: 'tag == "" && !has(attrs.x)' },
  'in a group': { return: 'group', group: 'g' },
  latest: { return: 'latest', rate: 1000 },
};

for (const [what, options] of Object.entries(ways)) {
  test(`F51: an empty payload arrives, once and empty: ${what}`, async () => {
    const parts = await Parts.start([{ code: 100, keep: 'last' }]);
    const bodies = [new Uint8Array(0), '', undefined];
    for (const body of bodies) {
      const provider = parts.provider();
      provider.provide(100, (subscription) => void subscription.respond(body));
      const client = parts.client();
      const got: number[] = [];
      client.subscribe(100, options, (message) => void got.push(message.body.length, message.text().length));
      await parts.advance(1000);
      assert.deepEqual(got, [0, 0], String(body));
      // and as the one that was kept for who comes later
      const late: number[] = [];
      parts
        .client()
        .subscribe(100, { filter: options.filter ?? '' }, (message) => void late.push(message.text().length));
      await parts.advance(1000);
      assert.deepEqual(late, [0]);
      await Promise.all([provider.close(), client.close()]);
      await parts.made.restart();
    }
  });
}

test('F51: an empty payload passes real sockets, as a response, an answer and an application message', async (t) => {
  const real = await Real.start(t, [{ code: 100 }]);
  const provider = await connectProvider(real.address, quiet);
  provider.provide(100, (subscription) => {
    if (subscription.params === 'answer') return '';
    return void subscription.respond(Buffer.alloc(0));
  });
  const client = await connect(real.address, quiet);
  const got: number[] = [];
  client.subscribe(100, {}, (message) => void got.push(message.body.length));
  await until(() => got.length > 0, 'it is there');
  assert.equal((await client.request(100, { params: 'answer' })).text(), '');
  assert.deepEqual(got, [0]);
  await Promise.all([client.close(), provider.close()]);
});
