import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect as connectProvider } from '@trunkline/publisher';
import { connect } from '@trunkline/subscriber';
import { until } from '../support/wait.js';
import { quiet, Real } from './real.js';

test('F90: a reload through code 0 says what changed, streams that did not change see nothing, a bad file changes nothing', async (t) => {
  const real = await Real.start(t, [
    { code: 100, name: 'prices' },
    { code: 200, name: 'orders' },
  ]);
  await using provider = await connectProvider(real.address, quiet);
  let started = 0;
  provider.provide(100, (subscription) => {
    started++;
    subscription.respond('item');
  });
  await using client = await connect(real.address, quiet);
  const got: string[] = [];
  const subscription = client.subscribe(100, {}, (message) => void got.push(message.text()));
  await until(() => got.length === 1, 'it is live');
  const reload = async () => (await client.request(0, { params: { do: 'reload' } })).json() as Record<string, unknown>;
  assert.equal((await reload()).unchanged, true);

  const file = { listen: ['tcp://127.0.0.1:0'] };
  real.write({
    ...file,
    services: [
      { code: 100, name: 'prices' },
      { code: 300, name: 'trades' },
    ],
  });
  const { unchanged, added, removed, changed, restart } = await reload();
  assert.deepEqual([unchanged, added, removed, changed, restart], [false, ['trades'], ['orders'], [], []]);

  real.write({
    ...file,
    services: [
      { code: 100, name: 'prices', linger: '5s' },
      { code: 300, name: 'trades' },
    ],
  });
  assert.deepEqual((await reload()).changed, [{ name: 'prices', fields: ['linger'] }]);

  real.write({ ...file, services: [{ code: 0 }] });
  await assert.rejects(reload(), ({ code, message }: { code: string; message: string }) => {
    assert.equal(code, 'CONFIG_INVALID');
    assert.match(message, /services\[0\]\.code/);
    return true;
  });
  assert.ok(real.dispatcher.registry.service(300) !== undefined);
  assert.deepEqual([subscription.state, started, got], ['live', 1, ['item']]);
});
