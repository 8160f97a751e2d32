import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TrunklineError } from '@trunkline/proto';
import { Parts, record } from './support.js';

test('F19: after an operator ended its session the old client says CLOSED, and a new one of the process works', async () => {
  const parts = await Parts.start([{ code: 100 }]);
  parts.provider().provide(100, (subscription) => void subscription.respond('item'));
  for (let round = 0; round < 3; round++) {
    const client = parts.client();
    const said = record(client.subscribe(100));
    const pending = assert.rejects(client.request(100, { timeoutMs: 60_000 }), { code: 'KICKED' });
    await parts.settle();
    const { dispatcher } = parts.made;
    for (const peer of [...dispatcher.peers.values()]) if (peer.requests.size > 0) dispatcher.kick(peer.id);
    await parts.advance(60_000);
    await pending;
    assert.equal(client.state, 'closed');
    assert.deepEqual(said, ['live', 'item', 'end KICKED']);
    const closed = (error: unknown) =>
      error instanceof TrunklineError && error.code === 'CLOSED' && (error.cause as TrunklineError).code === 'KICKED';
    assert.throws(() => client.subscribe(100), closed);
    await assert.rejects(client.request(100), closed);
    await assert.rejects(client.send(130, 100), closed);
    await client.close();
  }
  assert.equal(parts.made.dispatcher.peers.size, 1);
});
