import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ZmqTransport } from '@trunkline/proto/zmq';
import { connect as connectProvider } from '@trunkline/publisher';
import { type ConnectOptions, connect } from '@trunkline/subscriber';
import { writeKeys } from '../support/keys.js';
import { until } from '../support/wait.js';
import { folder, quiet, Real } from './real.js';
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
  // the accepting end hears of it by an event of its own
  await until(() => transport.counters.refusedHandshakes >= 4, 'all four are counted');
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

test('F43: the configured dispatcher refuses a wrong server key and a key that is not listed, and logs and counts it', async (t) => {
  const { curve } = writeKeys(folder(t), { own: server, allowed: [known.publicKey] });
  const real = await Real.start(t, [{ code: 100 }], { curve });
  const refused = () => real.logged.filter(({ msg }) => msg === 'handshake refused').length;
  const mine = { ...known, serverKey: server.publicKey };
  const wrong = {
    'wrong server key': { ...mine, serverKey: other.publicKey },
    'not on the list': { ...other, serverKey: server.publicKey },
    'a pair of nobody': { serverKey: server.publicKey },
  };
  for (const [what, keys] of Object.entries(wrong)) {
    // within 3 seconds
    const signal = AbortSignal.timeout(3000);
    await assert.rejects(connect(real.address, { ...quiet, curve: keys, signal }), { code: 'HANDSHAKE_REFUSED' }, what);
    await assert.rejects(connectProvider(real.address, { ...quiet, curve: keys, signal }), {
      code: 'HANDSHAKE_REFUSED',
    });
  }
  assert.ok(refused() > 0, 'it is logged');
  const provider = await connectProvider(real.address, { ...quiet, curve: mine });
  t.after(() => provider.close());
  provider.provide(100, () => 'here');
  const client = await connect(real.address, { ...quiet, curve: mine });
  t.after(() => client.close());
  assert.equal((await client.request(100)).text(), 'here');
  const status = (await client.request(0, { params: { show: 'status' } })).json() as {
    transport: { refusedHandshakes: number };
  };
  assert.ok(status.transport.refusedHandshakes >= 4, JSON.stringify(status));
});

test('F43: keys that cannot be used are refused before anything is dialled', async () => {
  const dial = (curve: ConnectOptions['curve'], more: object = {}) =>
    assert.rejects(connect('tcp://127.0.0.1:1', { ...quiet, ...more, ...(curve === undefined ? {} : { curve }) }), {
      code: 'OPTION_INVALID',
    });
  await dial({ ...known, serverKey: 'short' });
  await dial({ serverKey: server.publicKey, publicKey: known.publicKey });
  await dial({ ...known, serverKey: (() => undefined) as unknown as () => string });
  await dial({ ...known } as unknown as { serverKey: string });
  await dial({ ...known, serverKey: server.publicKey }, { transport: new ZmqTransport() });
});
