import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect as connectProvider } from '@trunkline/publisher';
import { connect } from '@trunkline/subscriber';
import { known, other, secured, server } from './secured.js';

test('F43: a wrong server key, a key that is not on the list and none at all are told, and not as a timeout', async (t) => {
  const { transport, address, options } = await secured(t);
  const wrong = {
    'wrong server key': options(known, other.publicKey),
    'not on the list': options(other),
    none: options(),
  };
  for (const [what, each] of Object.entries(wrong)) {
    await assert.rejects(connect(address, each), { code: 'HANDSHAKE_REFUSED' }, what);
  }
  await assert.rejects(connectProvider(address, options(other)), { code: 'HANDSHAKE_REFUSED' });
  assert.ok(transport.counters.refusedHandshakes >= 4);
  const client = await connect(address, options(known));
  await client.close();
});

test('F43: of several addresses the one that takes the keys is found', async (t) => {
  const [one, two] = [await secured(t), await secured(t)];
  one.transport.setCurve({ ...server, allowedKeys: [other.publicKey] });
  const client = await connect([one.address, two.address], { ...one.options(known), attemptMs: 60_000 });
  assert.equal(client.connection.address, two.address);
  await client.close();
});
