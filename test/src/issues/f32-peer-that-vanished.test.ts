import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect as connectProvider, type Subscription } from '@trunkline/publisher';
import { connect } from '@trunkline/subscriber';
import { until } from '../support/wait.js';
import { ghost } from './ghost.js';
import { quiet, Real } from './real.js';

test('F32: subscribers that vanished, or never take anything, hold up nobody', async (t) => {
  const real = await Real.start(t, [{ code: 100 }]);
  const provider = await connectProvider(real.address, quiet);
  let source: Subscription | undefined;
  provider.provide(100, (subscription) => {
    source = subscription;
  });
  const ghosts = await Promise.all(Array.from({ length: 5 }, () => ghost(real.address, 100)));
  const client = await connect(real.address, quiet);
  const got: unknown[] = [];
  await client.subscribe(100, {}, (message) => void got.push(message.json())).accepted();
  await until(() => real.dispatcher.peers.size === 7 && source !== undefined, 'all are there');
  // two vanish without a word, three stay and never read again
  for (const vanished of ghosts.slice(0, 2)) vanished.close();
  const bytes = 'x'.repeat(1000);
  for (let item = 0; item < 200; item++) source!.respond([item, bytes]);
  await until(() => got.length === 200, 'the healthy one has all');
  await until(() => real.dispatcher.peers.size === 5, 'those that vanished are gone');
  assert.deepEqual(
    got,
    Array.from({ length: 200 }, (_, item) => [item, bytes]),
  );
  for (const silent of ghosts) silent.close();
  source!.respond(['last']);
  await until(() => got.length === 201, 'and goes on');
  await until(() => real.dispatcher.peers.size === 2, 'nobody is left behind');
  await Promise.all([client.close(), provider.close()]);
});
