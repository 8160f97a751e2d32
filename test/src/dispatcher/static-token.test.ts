import assert from 'node:assert/strict';
import { test } from 'node:test';
import { curveKeyPair } from '@trunkline/proto/zmq';
import { bind } from '@trunkline/publisher';
import { connect } from '@trunkline/subscriber';
import { folder, quiet, Real } from '../issues/real.js';
import { writeKeys } from '../support/keys.js';
import { until } from '../support/wait.js';

test('the dispatcher shows its token to providers that it dials; one that refuses it is asked again after a reload', async (t) => {
  const provider = await bind('tcp://127.0.0.1:0', { ...quiet, token: 'right' });
  t.after(() => provider.close());
  provider.provide(100, () => 'here');
  const services = [{ code: 100, providers: [provider.address!] }];
  const real = await Real.start(t, services, { token: 'wrong' });
  const given = () => real.logged.some(({ msg }) => msg === 'provider is not dialled any more');
  await until(given, 'it is logged that the provider refuses the token');
  const client = await connect(real.address, quiet);
  t.after(() => client.close());
  const answer = client.request(100);
  real.write({ listen: [real.address], services, token: 'right' });
  assert.deepEqual((await real.daemon.reload())?.diff.live, ['token']);
  assert.equal((await answer).text(), 'here');
  assert.ok(!JSON.stringify(real.logged).includes('wrong'), 'a token is never logged');
});

test('a session that runs does not see another token; the next one shows it', async (t) => {
  let token = 'one';
  const start = (address: string) => bind(address, { ...quiet, token });
  let provider = await start('tcp://127.0.0.1:0');
  const address = provider.address!;
  provider.provide(100, () => token);
  const services = [{ code: 100, providers: [address] }];
  const real = await Real.start(t, services, { token });
  const client = await connect(real.address, quiet);
  t.after(() => client.close());
  assert.equal((await client.request(100)).text(), 'one');
  real.write({ listen: [real.address], services, token: 'two' });
  await real.daemon.reload();
  assert.equal((await client.request(100)).text(), 'one');
  token = 'two';
  const down = () => real.logged.some(({ msg }) => msg === 'provider down');
  await provider.close();
  await until(down, 'the provider is down');
  provider = await start(address);
  t.after(() => provider.close());
  provider.provide(100, () => token);
  await real.daemon.reload();
  assert.equal((await client.request(100)).text(), 'two');
});

test('a server key that comes with a reload of a dispatcher without keys refuses it: the provider is not dialled in plain text', async (t) => {
  const provider = await bind('tcp://127.0.0.1:0', quiet);
  t.after(() => provider.close());
  const real = await Real.start(t, [{ code: 100 }]);
  const entry = { address: provider.address!, serverKey: curveKeyPair().publicKey };
  real.write({ listen: [real.address], services: [{ code: 100, providers: [entry] }], ...writeKeys(folder(t)) });
  assert.equal(await real.daemon.reload(), undefined);
  const { error } = real.logged.findLast(({ msg }) => /^reload: refused/.test(String(msg)))!;
  assert.match(String(error), /needs a restart/);
  assert.equal([...real.dispatcher.statics.all()].length, 0);
});
