import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { connect as connectProvider, type Provider } from '@trunkline/publisher';
import { type Client, connect, type Message } from '@trunkline/subscriber';
import { repository } from '../support/command.js';
import { logOf, startDaemon } from '../support/daemon.js';
import { until } from '../support/wait.js';

const silent = { debug() {}, info() {}, warn() {}, error() {} };
const example = (path: string) => join(repository, 'examples', path);

async function openProvider(context: TestContext, address: string, name: string): Promise<Provider> {
  const provider = await connectProvider(address, { name, log: silent });
  context.after(() => provider.close());
  return provider;
}

async function openClient(context: TestContext, address: string): Promise<Client> {
  const client = await connect(address, { log: silent });
  context.after(() => client.close());
  return client;
}

test('least-loaded sends new requests to the provider with the fewest streams', async (context) => {
  const { address } = await startDaemon(context, {
    services: [{ code: 1, sendHandler: 'leastLoaded' }],
    modules: { sendHandlers: { leastLoaded: { path: example('send-handlers/least-loaded.mjs') } } },
  });
  const asked: Record<string, number[]> = { left: [], right: [] };
  for (const name of ['left', 'right']) {
    const provider = await openProvider(context, address, name);
    provider.provide(1, ({ params }) => {
      asked[name]!.push(params as number);
      return () => asked[name]!.splice(asked[name]!.indexOf(params as number), 1);
    });
  }
  const client = await openClient(context, address);
  const subscribe = async (params: number) => {
    const subscription = client.subscribe(1, { params });
    await subscription.accepted();
    return subscription;
  };
  const subscriptions = [await subscribe(0), await subscribe(1), await subscribe(2), await subscribe(3)];
  assert.equal(asked.left!.length, 2);
  assert.equal(asked.right!.length, 2);
  const emptied = [...asked.left!];
  await Promise.all(emptied.map((params) => subscriptions[params]!.unsubscribe()));
  await until(() => asked.left!.length === 0, 'one provider has nothing left');
  await subscribe(4);
  await subscribe(5);
  assert.deepEqual(asked.left, [4, 5]);
});

test('sample hands out one response in N and the final one', async (context) => {
  const { address } = await startDaemon(context, {
    services: [{ code: 1, returnHandlers: ['broadcast', 'sample'] }],
    modules: { returnHandlers: { sample: { path: example('return-handlers/sample.mjs'), options: { every: 4 } } } },
  });
  const provider = await openProvider(context, address, 'source');
  let go = () => {};
  provider.provide(1, (subscription) => {
    go = () => {
      for (let number = 0; number < 10; number++) subscription.respond(number, { final: number === 9 });
    };
  });
  const collect = async (options: object): Promise<{ numbers: unknown[]; ended: () => boolean }> => {
    const client = await openClient(context, address);
    const numbers: unknown[] = [];
    let over = false;
    const subscription = client.subscribe(1, options, (message: Message) => {
      numbers.push(message.json());
    });
    subscription.on('end', () => {
      over = true;
    });
    await subscription.accepted();
    return { numbers, ended: () => over };
  };
  const [all, some] = [await collect({}), await collect({ return: 'sample' })];
  go();
  await until(() => all.ended() && some.ended(), 'the stream has ended for both');
  assert.deepEqual(all.numbers, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  assert.deepEqual(some.numbers, [0, 4, 8, 9]);
});

test('log writes a line for each answered probe', async (context) => {
  const daemon = await startDaemon(context, {
    services: [{ code: 1, probeAfter: '50ms', onProbe: 'log' }],
    modules: { onProbe: { log: { path: example('on-probe/log.mjs') } } },
  });
  const provider = await openProvider(context, daemon.address, 'silent source');
  provider.provide(1, () => undefined);
  const client = await openClient(context, daemon.address);
  await client.subscribe(1, { params: { name: 'é' } }).accepted();
  const probes = () => logOf(daemon.process).filter(({ msg }) => msg === 'probe answered');
  await until(() => probes().length >= 2, 'probes are logged');
  const { code, provider: from, params } = probes()[0]!;
  assert.deepEqual([code, from, params], [1, 'silent source', '{"name":"é"}']);
});

test('echo answers a message of its type, or forwards it', async (context) => {
  const path = example('message-types/echo.mjs');
  const { address } = await startDaemon(context, {
    services: [{ code: 7 }],
    modules: { messageTypes: { 128: { path }, 129: { path, options: { forward: true } } } },
  });
  const provider = await openProvider(context, address, 'source');
  provider.provide(7, () => undefined);
  const forwarded: string[] = [];
  provider.on('application', (message) => {
    forwarded.push(message.text());
  });
  const client = await openClient(context, address);
  const answers: [number, number, string][] = [];
  client.on('application', (message) => {
    answers.push([message.type, message.code, message.text()]);
  });
  // the offer is known once a subscription is answered
  await client.subscribe(7).accepted();
  await client.send(128, 7, 'back');
  await client.send(129, 7, 'on');
  await client.send(129, 8, 'nobody provides this');
  await until(() => answers.length === 2 && forwarded.length === 1, 'all have arrived');
  assert.deepEqual(answers, [
    [128, 7, 'back'],
    [129, 8, 'nobody provides this'],
  ]);
  assert.deepEqual(forwarded, ['on']);
});
