import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Link } from '@trunkline/proto';
import { until } from '../../support/wait.js';
import { connected, echo, numbered, Record, testEnds, transport } from './record.js';

testEnds('an oversize batch ends its own connection only; the link comes back by itself', async (t, listens, dials) => {
  const {
    server,
    listener,
    client: bad,
    link: badLink,
  } = await connected(t, listens, dials, {
    listening: { maxBatchBytes: 100_000 },
    dialling: { reconnectMs: 5 },
    handle: echo,
  });
  const good = new Record();
  const goodLink = transport(t, dials).dial(listener.address, good);
  await until(() => good.up, 'the other link is up');
  goodLink.send(numbered(1, 100_000));
  badLink.send(numbered(2, 100_001));
  await until(() => bad.told.length === 3, 'the bad link was lost and came back');
  assert.deepEqual(bad.told, ['up', 'down: connection lost', 'up']);
  badLink.send(numbered(3));
  goodLink.send(numbered(4));
  await until(() => good.batches.length === 2 && bad.batches.length === 1, 'both work');
  assert.deepEqual([good.numbers, bad.numbers, good.told], [[1, 4], [3], ['up']]);
  assert.ok(!server.numbers.includes(2));
});

testEnds('an oversize batch from the listener ends that connection and not the dialled link', async (t, ...kinds) => {
  const { server, client, link } = await connected(t, ...kinds, { dialling: { maxBatchBytes: 1000, reconnectMs: 5 } });
  link.send(numbered(1));
  await until(() => server.links.length === 1, 'the peer is known');
  server.links[0]!.send(numbered(2, 1001));
  await until(() => client.told.length === 3, 'the link was lost and came back');
  link.send(numbered(3));
  await until(() => server.links.length === 2, 'the peer is known again');
  server.links[1]!.send(numbered(4, 1000));
  await until(() => client.batches.length === 1, 'the batch is here');
  assert.deepEqual(client.numbers, [4]);
});

testEnds('F32: sending to a peer that is gone tells once and holds up nobody', async (t, listens, dials) => {
  const { listening, server, listener, client: stays, link: staying } = await connected(t, listens, dials);
  const leaves = new Record();
  const leaving = transport(t, dials).dial(listener.address, leaves);
  await until(() => leaves.up, 'the other link is up');
  staying.send(numbered(1));
  await until(() => server.links.length === 1, 'the first is known');
  leaving.send(numbered(2));
  await until(() => server.links.length === 2, 'the second is known');
  leaving.close();
  // ZeroMQ's library says only that somebody left; a socket of Node says who
  if (listens === 'zmq') await until(() => server.suspects > 0, 'the listener heard that somebody left');
  else await until(() => server.told.length > 0, 'the listener told who left');
  const before = [...server.told];
  const [first, second] = server.links as [Link, Link];
  for (let i = 0; i < 10; i++) {
    second.send(numbered(i));
    assert.deepEqual(server.told, before, 'no event inside send');
    first.send(numbered(i));
  }
  await until(() => stays.batches.length === 10 && server.told.length > 0, 'the healthy one got all');
  assert.deepEqual(server.told, ['down: unreachable']);
  assert.deepEqual(stays.numbers, [...Array(10).keys()]);
  assert.equal(listening.counters.unreachable, 1);
  second.send(numbered(1));
  second.close();
  assert.deepEqual(server.told, ['down: unreachable']);
  assert.ok(listening.counters.droppedSends >= 1);
});

for (const dials of ['zmtp', 'zmq'] as const) {
  test(`many peers that leave at once are few reports where nobody knows who left [zmq listens, ${dials} dials]`, async (t) => {
    const server = new Record();
    const listener = await transport(t, 'zmq').listen('tcp://127.0.0.1:0', server);
    const dialling = transport(t, dials);
    const records = Array.from({ length: 40 }, () => new Record());
    const links = records.map((record) => dialling.dial(listener.address, record));
    await until(() => records.every((record) => record.up), 'all are up');
    for (const link of links) link.close();
    await until(() => server.suspects > 0, 'a report');
    assert.ok(server.suspects <= 3, `${server.suspects} reports`);
    assert.deepEqual(server.told, []);
  });

  test(`of many peers that leave at once each is told by name, and only who spoke [zmtp listens, ${dials} dials]`, async (t) => {
    const listening = transport(t, 'zmtp');
    const server = new Record();
    const down = new Set<Link>();
    server.onDown = (link) => {
      assert.ok(!down.has(link), 'once');
      down.add(link);
    };
    const listener = await listening.listen('tcp://127.0.0.1:0', server);
    const dialling = transport(t, dials);
    const records = Array.from({ length: 40 }, () => new Record());
    const links = records.map((record) => dialling.dial(listener.address, record));
    await until(() => records.every((record) => record.up), 'all are up');
    for (let i = 0; i < 30; i++) links[i]!.send(numbered(i));
    await until(() => server.batches.length === 30, 'thirty spoke');
    const owners = new Map(server.batches.map((_, index) => [server.numbers[index], server.links[index]]));
    for (let i = 10; i < 40; i++) links[i]!.close();
    await until(() => down.size === 20, 'those who spoke and left are told');
    for (let i = 0; i < 30; i++) assert.equal(down.has(owners.get(i)!), i >= 10, `${i}`);
    links[0]!.send(numbered(99));
    await until(() => server.batches.length === 31, 'the others go on');
    assert.deepEqual([down.size, listening.counters.unreachable, server.suspects], [20, 20, 0]);
  });
}

testEnds('F35: a peer that restarts at its address is reached again, three times', async (t, listens, dials) => {
  const client = new Record();
  const dialling = transport(t, dials, { reconnectMs: 5, reconnectMaxMs: 50 });
  let address = 'tcp://127.0.0.1:0';
  let link: Link | undefined;
  for (let round = 0; round < 4; round++) {
    const server = new Record();
    server.handle = echo;
    const peer = transport(t, listens);
    const listener = await peer.listen(address, server);
    address = listener.address;
    link ??= dialling.dial(address, client);
    await until(() => client.up, 'the link is up');
    link.send(numbered(round));
    await until(() => client.batches.length === round + 1, 'the batch came back');
    await peer.close();
    await until(() => !client.up, 'the link noticed');
    link.send(numbered(99));
  }
  assert.deepEqual(client.numbers, [0, 1, 2, 3]);
  assert.deepEqual(client.told, Array(4).fill(['up', 'down: connection lost']).flat());
  assert.equal(dialling.counters.droppedSends, 4);
});
