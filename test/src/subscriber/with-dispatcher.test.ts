import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Connection, type SessionLimits, silentLog } from '@trunkline/proto';
import { Provider, type Subscription as Request } from '@trunkline/publisher/core';
import { Client, type Subscription } from '@trunkline/subscriber/core';
import { ADDRESS, DispatcherWorld, nothing } from '../support/dispatcher-world.js';

/** A real dispatcher between real SDKs, in memory. */
async function bench(service: object, more: object = {}) {
  const dispatcher = await DispatcherWorld.start([{ code: 1, providers: 'dynamic', ...service }], more);
  const dial = (limits: Partial<SessionLimits> = {}) => {
    const context = dispatcher.world.context(limits);
    return new Connection({ context, transport: dispatcher.network, addresses: [ADDRESS], log: silentLog });
  };
  const provider = new Provider();
  provider.attach(dial());
  /** The requests that run at the provider now. */
  const running = new Set<Request>();
  provider.provide(1, (request) => {
    running.add(request);
    return () => running.delete(request);
  });
  await dispatcher.settle();
  const respond = (value: unknown) => {
    for (const request of running) request.respond(value);
  };
  const reconnect = async () => {
    dispatcher.network.cut(ADDRESS);
    await dispatcher.settle();
    dispatcher.network.restore(ADDRESS);
    await dispatcher.advance(5000);
  };
  return { dispatcher, dial, provider, running, respond, reconnect };
}

function record(subscription: Subscription): string[] {
  const lines: string[] = [];
  subscription.on('message', (message) => lines.push(`${message.json()}${message.snapshot ? ' kept' : ''}`));
  subscription.on('status', ({ state }) => lines.push(state));
  subscription.on('gap', ({ count, reason }) => lines.push(`gap ${count} ${reason}`));
  subscription.on('end', ({ code }) => lines.push(code));
  return lines;
}

test('rule 9: late joiners of one session share its line, and each gets its own snapshot', async () => {
  const { dispatcher, dial, respond } = await bench({ keep: { ring: 3 } });
  const client = new Client(dial());
  const first = record(client.subscribe(1));
  await dispatcher.settle();
  for (const value of [1, 2]) respond(value);
  await dispatcher.settle();
  const second = record(client.subscribe(1));
  const filtered = record(client.subscribe(1, { filter: 'body > 1' }));
  const live = record(client.subscribe(1, { start: 'live' }));
  await dispatcher.settle();
  respond(3);
  await dispatcher.settle();
  assert.deepEqual(first, ['live', '1', '2', '3']);
  assert.deepEqual(second, ['live', '1 kept', '2 kept', '3']);
  assert.deepEqual(filtered, ['live', '2 kept', '3']);
  assert.deepEqual(live, ['live', '3']);
  assert.deepEqual(client.counts, { subscriptions: 4, lines: 2, calls: 0, sends: 0 });
  await client.close();
  await dispatcher.settle();
  assert.deepEqual(dispatcher.leftovers(), nothing);
});

test('rules 9 and 11: a reconnect joins the kept history, or is told what is missing', async () => {
  const { dispatcher, dial, respond } = await bench({ keep: { ring: 2 } });
  const holder = new Client(dial());
  holder.subscribe(1, {}, () => {});
  const client = new Client(dial());
  const lines = record(client.subscribe(1));
  await dispatcher.settle();
  respond(1);
  await dispatcher.settle();
  const [, , link] = dispatcher.network.links(ADDRESS);
  const miss = async (values: number[]) => {
    link!.deaf = true;
    link!.peer!.deaf = true;
    // both ends give the session up, and the link is not dialled anew yet
    await dispatcher.advance(10_000);
    for (const value of values) respond(value);
    await dispatcher.settle();
    link!.deaf = false;
    link!.peer!.deaf = false;
    await dispatcher.advance(10_000);
  };
  await miss([2, 3]);
  await miss([4, 5, 6, 7]);
  assert.deepEqual(lines, [
    'live',
    '1',
    'disconnected',
    'live',
    '2 kept',
    '3 kept',
    'disconnected',
    'live',
    'gap 2 history',
    '6 kept',
    '7 kept',
  ]);
});

test('F5: after a restart of the dispatcher everything is back by itself, and lost history is told', async () => {
  const { dispatcher, dial, respond, running } = await bench({ keep: 'last' });
  const client = new Client(dial());
  const lines = record(client.subscribe(1));
  await dispatcher.settle();
  respond(1);
  await dispatcher.settle();
  await dispatcher.restart();
  await dispatcher.advance(5000);
  assert.equal(running.size, 1);
  respond(2);
  await dispatcher.settle();
  assert.deepEqual(lines, ['live', '1', 'disconnected', 'live', 'gap 0 history lost', '2']);
});

test('F8: subscribe, unsubscribe, subscribe in one turn, with the real dispatcher', async () => {
  const { dispatcher, dial, respond, running } = await bench({});
  const client = new Client(dial());
  const seen: unknown[] = [];
  const first = client.subscribe(1, {}, () => assert.fail('was unsubscribed'));
  await first.unsubscribe();
  const second = client.subscribe(1, {}, (message) => seen.push(message.json()));
  await dispatcher.settle();
  respond(['a']);
  await dispatcher.settle();
  assert.deepEqual([seen, running.size], [[['a']], 1]);
  await second.unsubscribe();
  await dispatcher.settle();
  assert.equal(running.size, 0);
  assert.deepEqual(dispatcher.leftovers(), nothing);
});

test('F18: a service that is taken away ends the subscription once, and may be asked for again', async () => {
  const { dispatcher, dial } = await bench({});
  const client = new Client(dial());
  const lines = record(client.subscribe(1));
  await dispatcher.settle();
  const { configuration, handlers } = dispatcher;
  dispatcher.dispatcher.reload({ ...configuration, services: [] }, handlers);
  await dispatcher.settle();
  assert.deepEqual(lines, ['live', 'SERVICE_REMOVED']);
  const refused = assert.rejects(client.request(1), { code: 'UNKNOWN_SERVICE' });
  await dispatcher.settle();
  await refused;
  dispatcher.dispatcher.reload(configuration, handlers);
  const again = client.subscribe(1);
  await dispatcher.settle();
  await again.accepted();
});

test('rule 10: identical requests of two clients are one call upstream', async () => {
  const { dispatcher, dial, running } = await bench({});
  const clients = [new Client(dial()), new Client(dial())];
  await dispatcher.settle();
  const answers = clients.map((client) => client.request(1, { params: { id: 7 } }));
  await dispatcher.settle();
  assert.equal(running.size, 1);
  for (const request of running) request.respond({ found: true }, { final: true });
  await dispatcher.settle();
  for (const answer of answers) assert.deepEqual((await answer).json(), { found: true });
  assert.deepEqual(dispatcher.leftovers(), nothing);
});

test('a slow loop is told what it missed, and goes on', async () => {
  const { dispatcher, dial, respond } = await bench({}, { session: { outbox: '64KiB' } });
  const client = new Client(dial({ receiveWindow: 20_000 }));
  const subscription = client.subscribe(1);
  const gaps: number[] = [];
  subscription.on('gap', ({ count }) => gaps.push(count));
  await dispatcher.settle();
  for (let value = 0; value < 300; value++) respond('x'.repeat(1000));
  await dispatcher.settle();
  let seen = 0;
  const loop = (async () => {
    for await (const message of subscription) seen += message.length > 0 ? 1 : 0;
  })();
  await dispatcher.advance(1000);
  assert.equal(seen + gaps.reduce((sum, count) => sum + count, 0), 300);
  assert.ok(seen > 60 && gaps.length > 0, `${seen} seen`);
  await subscription.unsubscribe();
  await loop;
});

test('rule 13: one process subscribes to what it provides, over one connection', async () => {
  const { dispatcher, provider, respond } = await bench({});
  const client = new Client(provider.connection!);
  const lines = record(client.subscribe(1));
  await dispatcher.settle();
  respond(['self']);
  await dispatcher.settle();
  await client.close();
  await dispatcher.settle();
  assert.deepEqual(lines, ['live', 'self', 'CLOSED']);
  assert.equal(provider.state, 'connected');
  assert.deepEqual(dispatcher.leftovers(), nothing);
});

test('snapshots leave the credit as it was', async () => {
  const { dispatcher, dial, respond } = await bench({ keep: 'last' });
  const client = new Client(dial({ receiveWindow: 2000 }));
  client.subscribe(1, {}, () => {});
  await dispatcher.settle();
  respond(['kept']);
  await dispatcher.settle();
  for (let round = 0; round < 200; round++) {
    const subscription = client.subscribe(1, {}, () => {});
    await dispatcher.settle();
    await subscription.unsubscribe();
  }
  await dispatcher.settle();
  const peers = [...dispatcher.dispatcher.peers.values()];
  const credit = Math.max(
    ...peers.filter(({ provider }) => provider === undefined).map(({ session }) => session.credit),
  );
  assert.ok(credit > 1000 && credit <= 2000, `${credit} of 2000`);
});
