import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bind, connect as connectProvider } from '@trunkline/publisher';
import { connect } from '@trunkline/subscriber';
import { configure } from '../support/dispatcher-world.js';
import { quiet, Real } from './real.js';

for (const host of ['127.0.0.1', '[::1]', 'localhost', '*']) {
  test(`F41: tcp://${host} works for a dispatcher, a static provider and clients`, async (t) => {
    const provider = await bind(`tcp://${host}:0`, quiet);
    const dial = (address: string) => address.replace('*', '127.0.0.1');
    provider.provide(100, () => 'answer');
    const real = await Real.start(t, [{ code: 100, providers: [dial(provider.address!)] }], {
      listen: [`tcp://${host}:0`],
    });
    const client = await connect(dial(real.address), quiet);
    assert.equal((await client.request(100)).text(), 'answer');
    const dialled = await connectProvider(dial(real.address), quiet);
    await Promise.all([dialled.close(), client.close(), provider.close()]);
  });
}

const wrong = [
  'tcp://127.0.0.1:70000',
  'tcp://127.0.0.1:65536',
  'tcp://127.0.0.1:-1',
  'tcp://127.0.0.1:1e3',
  'tcp://127.0.0.1:0x50',
  'tcp://127.0.0.1: 80',
  'tcp://127.0.0.1',
  'tcp://127.0.0.1:',
  'tcp://:7400',
  'tcp://::1:7400',
  'tcp://[::1]',
  'tcp://[::1',
  'tcp://[::g]:7400',
  'tcp://256.0.0.1:7400',
  'tcp://127.1:7400',
  'tcp://*:7400',
  'tcp://127.0.0.1:0',
  'tcp://127.0.0.1:*',
  'tcp://a b:7400',
  'udp://127.0.0.1:7400',
  'TCP//127.0.0.1:7400',
  '127.0.0.1:7400',
  '',
  `ipc:///tmp/${'x'.repeat(120)}`,
];

test('F41: an address that cannot be dialled is refused at once, by the SDKs and by the configuration', async () => {
  for (const address of wrong) {
    await assert.rejects(connect(address, quiet), { code: 'ADDRESS_INVALID' }, address);
    await assert.rejects(connectProvider(address, quiet), { code: 'ADDRESS_INVALID' }, address);
    assert.throws(() => configure([{ code: 100, providers: [address] }]), /services\[0\]\.providers/, address);
  }
});
