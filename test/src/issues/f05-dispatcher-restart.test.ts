import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Parts } from './support.js';

test('F5: after a restart of the dispatcher everything is subscribed again, and meanwhile it is told', async () => {
  const parts = await Parts.start([{ code: 100 }]);
  const running = new Set<unknown>();
  parts.provider().provide(100, ({ params }) => {
    assert.ok(!running.has(params), 'a duplicate');
    running.add(params);
    return () => running.delete(params);
  });
  const client = parts.client();
  const states: string[] = [];
  client.on('state', (state) => states.push(state));
  const subscriptions = [1, 2, 3].map((params) => client.subscribe(100, { params }));
  await parts.settle();
  for (let round = 0; round < 3; round++) {
    parts.made.network.cut('tcp://127.0.0.1:7400');
    await parts.settle();
    assert.equal(client.state, 'disconnected');
    for (const { state } of subscriptions) assert.equal(state, 'disconnected');
    await parts.advance(round * 60_000);
    await parts.made.restart();
    await parts.advance(6000);
    assert.equal(parts.made.dispatcher.registry.streamCount, 3);
    assert.equal(running.size, 3);
    for (const { state } of subscriptions) assert.equal(state, 'live');
  }
  assert.deepEqual(states, ['connected', ...Array(3).fill(['disconnected', 'connected']).flat()]);
});
