import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect as connectProvider } from '@trunkline/publisher';
import { connect } from '@trunkline/subscriber';
import { until } from '../support/wait.js';
import { quiet, Real } from './real.js';
import { FRONT, Parts } from './support.js';

test('F27: close resolves in every state, also twice at once, without the clock going on', async () => {
  const states: Record<string, (parts: Parts) => Promise<void>> = {
    'never connected': (parts) => parts.advance(1000),
    connecting: async () => {},
    connected: (parts) => parts.advance(1000),
    'the dispatcher is gone': async (parts) => {
      await parts.advance(1000);
      parts.made.network.cut(FRONT);
      parts.made.network.forget(FRONT);
      await parts.advance(10_000);
    },
    'the dispatcher is silent': async (parts) => {
      await parts.advance(1000);
      for (const link of parts.made.network.links(FRONT)) link.deaf = true;
    },
  };
  for (const [state, reach] of Object.entries(states)) {
    const parts = await Parts.start([{ code: 100 }]);
    if (state === 'never connected') parts.made.network.forget(FRONT);
    const client = parts.client();
    const provider = parts.provider();
    client.subscribe(100);
    const request = client.request(100, { params: 1 }).catch(({ code }) => code);
    await reach(parts);
    await Promise.all([client.close(), client.close(), provider.close(), provider.close()]);
    await Promise.all([client.close(), provider.close()]);
    assert.equal(await request, 'CLOSED', state);
    assert.deepEqual([client.state, provider.state], ['closed', 'closed'], state);
  }
});

test('F27: the same over sockets: the dispatcher is there, gone, or never was', async (t) => {
  const real = await Real.start(t, [{ code: 100 }]);
  const client = await connect(real.address, quiet);
  const provider = await connectProvider(real.address, quiet);
  client.subscribe(100);
  const cut = await connect(real.address, quiet);
  await real.daemon.stop();
  await until(() => cut.state === 'disconnected', 'the dispatcher is gone');
  await Promise.all([client.close(), provider.close(), cut.close(), cut.close()]);
  const signal = AbortSignal.timeout(50);
  await assert.rejects(connect('tcp://127.0.0.1:1', { ...quiet, signal }), { code: 'ABORTED' });
});
