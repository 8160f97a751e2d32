import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Dispatcher, parseConfiguration } from '@trunkline/dispatcher';
import { Connection, silentLog } from '@trunkline/proto';
import { Provider } from '@trunkline/publisher/core';
import { Client } from '@trunkline/subscriber/core';
import { MemoryNetwork, MemoryWorld } from '../support/memory-link.js';

const FRONT = 'tcp://127.0.0.1:7400';
const BACK = 'tcp://127.0.0.1:7500';

/** A real dispatcher between real SDKs, in memory. Code 1: whoever offers it; code 2: a static address. */
async function bench() {
  const world = new MemoryWorld();
  const network = new MemoryNetwork(world);
  const file = {
    listen: [FRONT],
    services: [
      { code: 1, providers: 'dynamic' },
      { code: 2, providers: [BACK] },
    ],
  };
  const { configuration } = parseConfiguration(new TextEncoder().encode(JSON.stringify(file)), { baseDirectory: '.' });
  const none = { send: new Map(), return: new Map(), probe: new Map(), application: new Map() };
  const context = world.context();
  const dispatcher = new Dispatcher({ context, transport: network, configuration, handlers: none, log: silentLog });
  await dispatcher.start();
  const dial = () =>
    new Connection({ context: world.context(), transport: network, addresses: [FRONT], log: silentLog });
  const client = new Client(dial());
  await world.settle();
  return { world, network, dispatcher, dial, client };
}

test('one handler call for many subscribers; the cleanup comes with the last that leaves', async () => {
  const { world, dial, client } = await bench();
  const other = new Client(dial());
  const provider = new Provider();
  provider.attach(dial());
  const log: unknown[] = [];
  let respond: (value: unknown) => boolean = () => false;
  provider.provide(1, (subscription) => {
    log.push(subscription.params);
    respond = (value) => subscription.respond(value, { key: 'k' });
    return () => log.push('stopped');
  });
  await world.settle();
  const got: unknown[] = [];
  const subscriptions = [client, client, other].map((each) =>
    each.subscribe(1, { params: { symbol: 'ACME' } }, (message) => void got.push(message.json())),
  );
  await world.settle();
  assert.deepEqual(log, [{ symbol: 'ACME' }]);
  assert.equal(respond({ v: 0 }), true);
  await world.settle();
  assert.deepEqual(got, [{ v: 0 }, { v: 0 }, { v: 0 }]);
  for (const subscription of subscriptions) {
    assert.equal(log.length, 1);
    subscription.unsubscribe();
    await world.settle();
  }
  assert.deepEqual([log.at(-1), provider.subscriptions], ['stopped', 0]);
});

test('request and answer; a refusal arrives with its code', async () => {
  const { world, network, client } = await bench();
  const provider = new Provider();
  await network.listen(BACK, provider.host(world.context()));
  provider.provide(2, async ({ params }) => {
    if (params === 'bad') throw new TypeError('no');
    return { echo: params };
  });
  await world.advance(5000);
  const answer = client.request(2, { params: 'good' });
  const refused = assert.rejects(client.request(2, { params: 'bad' }), { code: 'HANDLER_FAILED' });
  await world.settle();
  assert.deepEqual((await answer).json(), { echo: 'good' });
  await refused;
  assert.equal(provider.subscriptions, 0);
});

for (const [code, bound] of [
  [1, false],
  [2, true],
] as const) {
  test(`a handler that is withdrawn and provided again serves the same subscribers (${bound ? 'bound' : 'dialled in'})`, async () => {
    const { world, network, dial, client } = await bench();
    const provider = new Provider();
    if (bound) await network.listen(BACK, provider.host(world.context()));
    else provider.attach(dial());
    await world.advance(5000);
    const got: string[] = [];
    const first = provider.provide(code, (subscription) => void subscription.respond('first'));
    client.subscribe(code, {}, (message) => void got.push(message.text()));
    await world.settle();
    await first.withdraw();
    await world.settle();
    assert.equal(provider.subscriptions, 0);
    provider.provide(code, (subscription) => void subscription.respond('second'));
    await world.settle();
    assert.deepEqual([got, provider.subscriptions], [['first', 'second'], 1]);
  });
}

test('a provider with an empty memory gets its subscriptions again (F1)', async () => {
  const { world, dial, client } = await bench();
  const got: string[] = [];
  client.subscribe(1, { params: [7] }, (message) => void got.push(message.text()));
  for (let life = 0; life < 5; life++) {
    const provider = new Provider();
    const connection = dial();
    provider.attach(connection);
    let started = 0;
    provider.provide(1, (subscription) => {
      started++;
      subscription.respond(`life ${life}`);
    });
    await world.advance(1000);
    assert.equal(started, 1);
    connection.session!.lost('killed');
    await connection.close();
    await world.advance(60_000);
  }
  assert.deepEqual(
    got,
    [0, 1, 2, 3, 4].map((life) => `life ${life}`),
  );
});

test('one connection subscribes to what it provides (rule 13)', async () => {
  const { world, client } = await bench();
  const provider = new Provider();
  provider.attach(client.connection);
  provider.provide(1, (subscription) => void subscription.respond('to myself'));
  const got: string[] = [];
  client.subscribe(1, {}, (message) => void got.push(message.text()));
  await world.settle();
  assert.deepEqual(got, ['to myself']);
  await provider.close();
  await world.settle();
  assert.equal(client.connection.state, 'open');
});
