import assert from 'node:assert/strict';
import { test } from 'node:test';
import { payload, singleMessage, Type } from '@trunkline/proto';
import { bind } from '@trunkline/publisher';
import { connect } from '@trunkline/subscriber';
import { configure } from '../support/dispatcher-world.js';
import { quiet } from './real.js';
import { Parts, record } from './support.js';

test('F54: probeAfter "0s" is off, which the dispatcher shows; a silent stream is never probed and nothing spins', async () => {
  const parts = await Parts.start([{ code: 100, probeAfter: '0s', linger: '0s' }, { code: 200 }]);
  parts.provider().provide(100, () => {});
  const client = parts.client();
  const said = record(client.subscribe(100));
  await parts.advance(3_600_000);
  assert.deepEqual(said, ['live']);
  assert.equal(parts.wire.filter(({ type }) => type === 'PROBE').length, 0);
  const answer = client.request(0, { params: { show: 'services' } });
  await parts.settle();
  const { items } = (await answer).json() as { items: Record<string, unknown>[] };
  assert.deepEqual(
    items.map(({ from, resendAfter, probeAfter, linger }) => [from, resendAfter, probeAfter, linger]),
    [
      [100, '2000ms', 'off', 'off'],
      [200, '2000ms', '10000ms', 'off'],
    ],
  );
});

test('F54: where 0 has no meaning the configuration refuses it, and says which', () => {
  const zeros = [
    { resendAfter: '0s' },
    { resendCap: '0ms' },
    { requestWindow: 0 },
    { probeMisses: 0 },
    { latestRate: 0 },
    { keep: { ring: 0 } },
    { limits: { maxStreams: 0 } },
    { limits: { maxParams: 0 } },
  ];
  for (const zero of zeros) {
    const [name] = Object.keys(zero);
    assert.throws(() => configure([{ code: 100, ...zero }]), new RegExp(`services\\[0\\]\\.${name}`), name);
  }
  for (const session of [{ heartbeat: '0s' }, { livenessFactor: 0 }, { receiveWindow: 0 }, { maxSessions: 0 }]) {
    assert.throws(() => configure([], { session }), /session\./, JSON.stringify(session));
  }
  assert.throws(() => configure([], { drain: '0s' }), /drain/);
});

test('F54: so do the SDKs, also for what no timer can wait', async () => {
  const address = 'tcp://127.0.0.1:1';
  for (const value of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31, '1s' as never]) {
    for (const name of ['heartbeat', 'helloAfter', 'helloCap', 'livenessFactor', 'receiveWindow', 'maxMessage']) {
      const limits = { [name]: value };
      await assert.rejects(connect(address, { ...quiet, limits }), { code: 'OPTION_INVALID' }, `${name} ${value}`);
    }
    await assert.rejects(bind('tcp://127.0.0.1:0', { limits: { heartbeat: value } }), { code: 'OPTION_INVALID' });
    await assert.rejects(connect([address, address], { ...quiet, attemptMs: value }), { code: 'OPTION_INVALID' });
  }
  const parts = await Parts.start([{ code: 100 }]);
  const client = parts.client();
  for (const value of [0, -1, 1.5, Number.NaN, 2 ** 31]) {
    await assert.rejects(client.request(100, { timeoutMs: value }), { code: 'OPTION_INVALID' });
    assert.throws(() => client.subscribe(100, { return: 'latest', rate: value === 2 ** 31 ? 2 ** 32 : value }), {
      code: 'OPTION_INVALID',
    });
  }
});

test('F54: a peer that announces a heartbeat of 0 is told, and no session of it comes and goes', async () => {
  const parts = await Parts.start([{ code: 100 }]);
  const { world, network } = parts.made;
  const got: number[] = [];
  const link = network.dial('tcp://127.0.0.1:7400', { onBatch: (_link, batch) => void got.push(batch[5]!) });
  const hello = { nonce: new Uint8Array(8), instance: new Uint8Array(16), name: '', maxMessage: 65536, credit: 65536 };
  link.send(singleMessage({ type: Type.HELLO }, payload.hello.encode({ ...hello, heartbeatMs: 0, token: '' })));
  await world.advance(1000);
  assert.deepEqual(got, [Type.BYE]);
  assert.equal(parts.made.dispatcher.peers.size, 0);
});
