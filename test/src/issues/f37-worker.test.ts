import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { connect as connectProvider } from '@trunkline/publisher';
import { until } from '../support/wait.js';
import { quiet, Real } from './real.js';

test('F37: a worker that is terminated with a client in it: the process lives and the dispatcher lets go', async (t) => {
  const real = await Real.start(t, [{ code: 100 }], { session: { heartbeat: '100ms' } });
  const provider = await connectProvider(real.address, quiet);
  provider.provide(100, (subscription) => void subscription.respond('item'));
  const sdk = pathToFileURL(createRequire(import.meta.url).resolve('@trunkline/subscriber')).href;
  for (let round = 0; round < 2; round++) {
    const worker = new Worker(
      `const { parentPort, workerData } = require('node:worker_threads');
       import(workerData.sdk).then(async ({ connect }) => {
         const client = await connect(workerData.address, { limits: { heartbeat: 100 } });
         client.subscribe(100, {}, (message) => parentPort.postMessage(message.text()));
       });`,
      { eval: true, workerData: { sdk, address: real.address } },
    );
    assert.deepEqual(await once(worker, 'message'), ['item']);
    await worker.terminate();
    await until(() => real.dispatcher.peers.size === 1, 'the session is gone');
    await until(() => provider.subscriptions === 0, 'and what it asked for');
  }
  await provider.close();
});
