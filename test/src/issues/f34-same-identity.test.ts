import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect as connectProvider } from '@trunkline/publisher';
import { connect } from '@trunkline/subscriber';
import { until } from '../support/wait.js';
import { ghost } from './ghost.js';
import { quiet, Real } from './real.js';
import { FRONT, Parts, record } from './support.js';

test('F34: names are no identity: any number of clients with one name, or of one process, live side by side', async (t) => {
  const real = await Real.start(t, [{ code: 100 }]);
  const provider = await connectProvider(real.address, { ...quiet, name: 'same' });
  provider.provide(100, (subscription) => void subscription.respond('item'));
  const clients = await Promise.all([1, 2, 3].map(() => connect(real.address, { ...quiet, name: 'same' })));
  const got = clients.map((client) => record(client.subscribe(100, { params: 1 })));
  await until(() => got.every((lines) => lines.includes('live')), 'all are served');
  assert.equal(real.dispatcher.peers.size, 4);
  await Promise.all([...clients, provider].map((each) => each.close()));
});

test('F34: foreign clients that chose one routing id live side by side, and one that died is served again at once', async (t) => {
  const real = await Real.start(t, [{ code: 100 }]);
  const provider = await connectProvider(real.address, quiet);
  provider.provide(100, () => {});
  const first = await ghost(real.address, 100, 'fixed');
  for (let life = 0; life < 2; life++) {
    const dealer = await ghost(real.address, 100, 'fixed');
    await until(() => real.dispatcher.peers.size === 3, `life ${life}`);
    dealer.close();
    await until(() => real.dispatcher.peers.size === 2, 'only the first is left');
    assert.equal(provider.subscriptions, 1);
  }
  first.close();
  await until(() => real.dispatcher.peers.size === 1, 'no session of an earlier life is left');
  await until(() => provider.subscriptions === 0, 'nor what it asked for');
  await provider.close();
});

test('F34: a link that is cut on one side only comes back, and the half that stayed is cleaned up', async () => {
  const parts = await Parts.start([{ code: 100 }]);
  parts.provider().provide(100, (subscription) => void subscription.respond('item'));
  const client = parts.client();
  const said = record(client.subscribe(100));
  await parts.settle();
  // the old connection is half dead: the dispatcher hears nothing of its end
  const [, half] = parts.made.network.links(FRONT);
  half!.deaf = true;
  const old = half!.peer!;
  half!.peer = undefined;
  client.connection.session!.lost('cut without a word');
  half!.deaf = false;
  parts.made.network.restore(FRONT);
  await parts.advance(2000);
  assert.deepEqual(said.slice(-2), ['disconnected', 'live']);
  await parts.advance(10_000);
  assert.equal(old.closed, true);
  assert.equal(parts.made.dispatcher.peers.size, 2);
});
