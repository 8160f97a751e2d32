import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Connection, Flag, payload, silentLog } from '@trunkline/proto';
import { Client, type Subscription } from '@trunkline/subscriber/core';
import { ADDRESS, type Answer, EPOCH, type Setup, setUp } from './fake-dispatcher.js';

const { KEPT, LIVE, AFTER } = payload.StartFrom;

const startOf = ({ dispatcher }: Setup, index = -1) => dispatcher.asked.at(index)!.request.start;

function record(subscription: Subscription): string[] {
  const lines: string[] = [];
  subscription.on('status', ({ state }) => lines.push(state));
  subscription.on('gap', ({ count, reason }) => lines.push(`gap ${count} ${reason}`));
  subscription.on('message', ({ sequence }) => lines.push(`message ${sequence}`));
  return lines;
}

test('F5: a lost session is told, and everything is requested again by itself, in one burst', async () => {
  const { client, dispatcher, world, network } = await setUp();
  const subscriptions = [1, 2, 3].map((code) => client.subscribe(code));
  const lines = subscriptions.map(record);
  const states: string[] = [];
  client.on('state', (state, reason) => states.push(`${state} ${reason?.code ?? ''}`));
  await world.settle();
  network.cut(ADDRESS);
  await world.settle();
  assert.equal(client.state, 'disconnected');
  for (const { state } of subscriptions) assert.equal(state, 'disconnected');
  network.restore(ADDRESS);
  await world.advance(5000);
  assert.deepEqual(states, ['disconnected SESSION_LOST', 'connected ']);
  assert.deepEqual(dispatcher.requests, [1, 2, 3, 1, 2, 3]);
  for (const each of lines) assert.deepEqual(each, ['live', 'disconnected', 'live']);
  assert.deepEqual(client.counts, { subscriptions: 3, lines: 3, calls: 0, sends: 0 });
});

test('F6: subscribing in every connected event doubles nothing that was there', async () => {
  const setup = await setUp();
  const { client, dispatcher, world, reconnect } = setup;
  const seen: string[] = [];
  client.subscribe(100, {}, ({ sequence }) => seen.push(`first ${sequence}`));
  let more = 0;
  client.on('state', (state) => {
    if (state !== 'connected') return;
    const name = ++more;
    client.subscribe(100, {}, ({ sequence }) => seen.push(`more${name} ${sequence}`));
  });
  await world.settle();
  dispatcher.onRequest = (asked) => dispatcher.accept(asked, { line: 9 });
  for (let round = 0; round < 5; round++) await reconnect();
  assert.equal(dispatcher.asked.length, 1 + 2 + 3 + 4 + 5 + 6);
  dispatcher.respond(9, 1);
  await world.settle();
  assert.deepEqual(seen, ['first 1', 'more1 1', 'more2 1', 'more3 1', 'more4 1', 'more5 1']);
});

test('rule 9: a reconnect goes on after what was seen, in the history it was seen in', async () => {
  const setup = await setUp();
  const { client, dispatcher, world, reconnect } = setup;
  const lines = record(client.subscribe(100));
  await world.settle();
  dispatcher.respond(1, 41);
  dispatcher.respond(1, 42);
  await world.settle();
  dispatcher.onRequest = (asked) => {
    dispatcher.accept(asked, { line: 1, snapshot: true, resumed: true, sequence: 44 });
    dispatcher.respond(1, 43, undefined, { flags: Flag.SNAPSHOT });
    dispatcher.respond(1, 44, undefined, { flags: Flag.SNAPSHOT });
    dispatcher.respond(1, 44, undefined, { flags: Flag.SNAPSHOT | Flag.SNAPSHOT_END });
    dispatcher.respond(1, 45);
  };
  await reconnect();
  const start = startOf(setup);
  assert.deepEqual([start.from, start.sequence, [...start.epoch]], [AFTER, 42, [...EPOCH]]);
  assert.deepEqual(lines.slice(4), ['live', 'message 43', 'message 44', 'message 45']);
  await reconnect();
  assert.equal(startOf(setup).sequence, 45);
});

test('a stream that was joined without a message is gone on with after the joining', async () => {
  const setup = await setUp({ accepting: false });
  setup.dispatcher.onRequest = (asked) => setup.dispatcher.accept(asked, { sequence: 7, resumed: true });
  const lines = record(setup.client.subscribe(100));
  await setup.world.settle();
  await setup.reconnect();
  assert.deepEqual([startOf(setup).from, startOf(setup).sequence], [AFTER, 7]);
  assert.deepEqual(lines, ['live', 'disconnected', 'live']);
});

test('live only stays live only, and nothing seen starts as at first', async () => {
  const setup = await setUp();
  setup.client.subscribe(100, { start: 'live' });
  setup.client.subscribe(101);
  await setup.world.settle();
  setup.dispatcher.respond(1, 1);
  await setup.reconnect();
  assert.deepEqual([startOf(setup, -2).from, startOf(setup).from], [LIVE, KEPT]);
});

test('a snapshot that was cut off is asked for again as a whole', async () => {
  const setup = await setUp({ accepting: false });
  const { dispatcher } = setup;
  dispatcher.onRequest = (asked) => {
    dispatcher.accept(asked, { snapshot: true, sequence: 9 });
    dispatcher.respond(1, 3, undefined, { flags: Flag.SNAPSHOT });
  };
  const subscription = setup.client.subscribe(100);
  const sequences: number[] = [];
  subscription.on('accepted', () => sequences.push(subscription.sequence));
  await setup.world.settle();
  assert.deepEqual([sequences, subscription.sequence], [[0], 3]);
  await setup.reconnect();
  assert.equal(startOf(setup).from, KEPT);
});

test('a snapshot that was complete is gone on with after the joining', async () => {
  const setup = await setUp({ accepting: false });
  const { dispatcher } = setup;
  dispatcher.onRequest = (asked) => {
    dispatcher.accept(asked, { snapshot: true, sequence: 9 });
    dispatcher.respond(1, 4, undefined, { flags: Flag.SNAPSHOT });
    dispatcher.respond(1, 9, undefined, { flags: Flag.SNAPSHOT | Flag.SNAPSHOT_END });
  };
  setup.client.subscribe(100);
  await setup.world.settle();
  await setup.reconnect();
  assert.deepEqual([startOf(setup).from, startOf(setup).sequence], [AFTER, 9]);
});

test('a position in a lost history is not used again', async () => {
  const setup = await setUp();
  const { client, dispatcher, world, reconnect } = setup;
  client.subscribe(100);
  await world.settle();
  dispatcher.respond(1, 500);
  await world.settle();
  const epoch = Uint8Array.of(7);
  dispatcher.onRequest = (asked) => dispatcher.accept(asked, { line: 1, epoch, snapshot: true, sequence: 3 });
  await reconnect();
  assert.equal(startOf(setup).sequence, 500);
  await reconnect();
  assert.equal(startOf(setup).from, KEPT);
});

test('a history that was cut off while it was resumed goes on where it was', async () => {
  const setup = await setUp({ accepting: false });
  const { dispatcher } = setup;
  dispatcher.onRequest = (asked) => {
    dispatcher.accept(asked, { snapshot: true, resumed: true, sequence: 9 });
    dispatcher.respond(1, 6, undefined, { flags: Flag.SNAPSHOT });
  };
  setup.client.subscribe(100, { start: { after: 5, epoch: EPOCH } });
  await setup.world.settle();
  await setup.reconnect();
  assert.deepEqual([startOf(setup).from, startOf(setup).sequence], [AFTER, 6]);
});

/** Sees message 5, reconnects, is answered so, and gets message 6; returns what was told since. */
async function resumed(answer: Answer, gap = ''): Promise<string[]> {
  const { client, dispatcher, world, reconnect } = await setUp();
  const lines = record(client.subscribe(100));
  await world.settle();
  dispatcher.respond(1, 5);
  await world.settle();
  dispatcher.onRequest = (asked) => {
    dispatcher.accept(asked, { line: 1, ...answer });
    if (gap !== '') dispatcher.gap(1, 3, 6, 8, gap);
    dispatcher.respond(1, 6);
  };
  await reconnect();
  return lines.slice(3);
}

test('history that is lost is told, once and before what follows', async () => {
  const lost = ['live', 'gap 0 history lost', 'message 6'];
  assert.deepEqual(await resumed({ resumed: true }), ['live', 'message 6']);
  assert.deepEqual(await resumed({ resumed: false }), lost);
  assert.deepEqual(await resumed({ resumed: true, epoch: Uint8Array.of(2) }), lost);
  assert.deepEqual(await resumed({ resumed: false }, 'history'), ['live', 'gap 3 history', 'message 6']);
  // a gap about something else does not stand for it
  const both = ['live', 'gap 0 history lost', 'gap 3 overflow', 'message 6'];
  assert.deepEqual(await resumed({ resumed: false }, 'overflow'), both);
});

test('lost history is told even if nothing follows', async () => {
  const { client, dispatcher, world, reconnect } = await setUp();
  const lines = record(client.subscribe(100));
  await world.settle();
  dispatcher.respond(1, 5);
  await world.settle();
  await reconnect();
  assert.deepEqual(lines.slice(3), ['live', 'gap 0 history lost']);
});

test('after a new epoch its own sequences count', async () => {
  const setup = await setUp();
  const { client, dispatcher, world, reconnect } = setup;
  client.subscribe(100);
  await world.settle();
  dispatcher.respond(1, 500);
  await world.settle();
  const epoch = Uint8Array.of(7);
  dispatcher.onRequest = (asked) => {
    dispatcher.accept(asked, { line: 1, epoch });
    dispatcher.respond(1, 2);
  };
  await reconnect();
  await reconnect();
  assert.deepEqual([startOf(setup).sequence, [...startOf(setup).epoch]], [2, [7]]);
});

test('rule 11: a dispatcher that restarted answers RESET, and all is back within the round trip', async () => {
  const { client, dispatcher, world } = await setUp();
  const states: string[] = [];
  client.on('state', (state) => states.push(state));
  const subscription = client.subscribe(100);
  // a session that ended as soon as it began would not be begun again at once
  await world.advance(1000);
  dispatcher.restart();
  const { time } = world;
  client.subscribe(101);
  await world.settle();
  assert.deepEqual(states, ['disconnected', 'connected']);
  assert.deepEqual(dispatcher.requests, [1, 1, 2]);
  assert.deepEqual([subscription.state, world.time], ['live', time]);
});

test('a dispatcher that restarted is noticed by heartbeats alone', async () => {
  const { client, dispatcher, world } = await setUp();
  client.subscribe(100);
  await world.settle();
  dispatcher.restart();
  await world.advance(2001);
  assert.deepEqual([dispatcher.requests, client.state], [[1, 1], 'connected']);
});

test('unsubscribing while disconnected is for good, and costs nothing later', async () => {
  const { client, dispatcher, world, network } = await setUp();
  const subscription = client.subscribe(100);
  const other = client.subscribe(101);
  await world.settle();
  network.cut(ADDRESS);
  await world.settle();
  await subscription.unsubscribe();
  network.restore(ADDRESS);
  await world.advance(5000);
  assert.deepEqual(dispatcher.requests, [1, 2, 2]);
  assert.equal(other.state, 'live');
});

test('unsubscribing others when one is told of the loss', async () => {
  const { client, world, network } = await setUp();
  const subscriptions = [1, 2, 3].map((code) => client.subscribe(code));
  for (const subscription of subscriptions) {
    subscription.on('status', ({ state }) => {
      if (state === 'disconnected') for (const other of subscriptions) other[Symbol.asyncDispose]();
    });
  }
  await world.settle();
  network.cut(ADDRESS);
  await world.settle();
  assert.deepEqual([client.state, client.counts.subscriptions], ['disconnected', 0]);
});

test('messages that waited for a handler when the session was lost are still handled', async () => {
  const { client, dispatcher, world, reconnect } = await setUp();
  let open = () => {};
  const stuck = new Promise<void>((resolve) => {
    open = resolve;
  });
  const seen: number[] = [];
  client.subscribe(100, {}, async ({ sequence }) => {
    seen.push(sequence);
    await stuck;
  });
  await world.settle();
  dispatcher.respond(1, 1);
  dispatcher.respond(1, 2);
  await world.settle();
  await reconnect();
  open();
  await world.settle();
  assert.deepEqual(seen, [1, 2]);
});

test('F30: clients that were cut at one moment come back spread over time', async () => {
  const setup = await setUp();
  const { world, reconnect } = setup;
  const times = new Set<number>();
  setup.dispatcher.onRequest = () => times.add(world.time);
  const clients = Array.from({ length: 9 }, () => {
    const context = world.context();
    const options = { context, transport: setup.network, addresses: [ADDRESS], log: silentLog };
    return new Client(new Connection(options));
  });
  for (const client of clients) client.subscribe(100);
  await world.settle();
  times.clear();
  await reconnect();
  assert.ok(times.size > 4, `${times.size} different moments`);
  await Promise.all(clients.map((client) => client.close()));
});
