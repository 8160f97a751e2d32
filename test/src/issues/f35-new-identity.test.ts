import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bind } from '@trunkline/publisher';
import { connect } from '@trunkline/subscriber';
import { until } from '../support/wait.js';
import { quiet, Real } from './real.js';

test('F35: a provider at a static address that restarts is reached each time', async (t) => {
  let provider = await bind('tcp://127.0.0.1:0', quiet);
  const { address } = provider;
  const real = await Real.start(t, [{ code: 100, providers: [address] }]);
  const client = await connect(real.address, quiet);
  const got: string[] = [];
  client.subscribe(100, {}, (message) => void got.push(message.text()));
  for (let life = 0; life < 4; life++) {
    provider.provide(100, (subscription) => void subscription.respond(`life ${life}`));
    await until(() => got.at(-1) === `life ${life}`, `life ${life} is reached`);
    await provider.close();
    if (life < 3) provider = await bind(address!, quiet);
  }
  assert.equal(got.length, 4);
  await client.close();
});
