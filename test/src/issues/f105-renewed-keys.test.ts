import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TrunklineError } from '@trunkline/proto';
import { connect as connectProvider } from '@trunkline/publisher';
import { connect } from '@trunkline/subscriber';
import { until } from '../support/wait.js';
import { known, other, secured, server } from './secured.js';

test('F105: a key that is taken away leaves what runs; a new session with it is refused, and told; a new key comes in', async (t) => {
  const { transport, address, options } = await secured(t);
  const provider = await connectProvider(address, options(known));
  provider.provide(100, (subscription) => subscription.respond('item'));
  const mine = options(known);
  const client = await connect(address, mine);
  const errors: TrunklineError[] = [];
  client.on('error', (error) => errors.push(error));
  transport.setCurve({ ...server, allowedKeys: [other.publicKey] });
  assert.equal((await new Promise<{ text(): string }>((got) => client.subscribe(100, {}, got))).text(), 'item');
  await assert.rejects(connect(address, options(known)), { code: 'HANDSHAKE_REFUSED' });
  // a key that is renewed in place counts from the next attempt
  mine.transport.setCurve({ ...other, serverKey: server.publicKey });
  const renewed = await connect(address, options(other));
  await Promise.all([renewed.close(), provider.close(), client.close()]);
  assert.deepEqual(errors, []);
});

test('F105: a client whose key was taken away hears why it does not come back, once, and comes back with a new one', async (t) => {
  const first = await secured(t);
  const mine = first.options(known);
  const client = await connect(first.address, mine);
  const errors: string[] = [];
  client.on('error', ({ code }) => errors.push(code));
  // the dispatcher restarts with another list at the same address
  await first.transport.close();
  await secured(t, first.address, other);
  await until(() => errors.length > 0, 'the refusal was told');
  await until(() => mine.transport.counters.refusedHandshakes >= 2, 'it is tried on');
  assert.deepEqual([errors, client.state], [['HANDSHAKE_REFUSED'], 'disconnected']);
  mine.transport.setCurve({ ...other, serverKey: server.publicKey });
  await until(() => client.state === 'connected', 'it is back');
  await client.close();
});
