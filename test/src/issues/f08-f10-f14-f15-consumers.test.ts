import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client, Consumption, QueueMessage } from '@trunkline/subscriber/core';
import { nothing } from '../support/dispatcher-world.js';
import { items, member, numbers, QUEUE, queueParts, settled, stored } from './queue-support.js';
import type { Parts } from './support.js';

type Leave = (parts: Parts, client: Client, consumptions: readonly Consumption[]) => unknown;

const ways: Record<string, Leave> = {
  'closes politely': (_parts, client) => client.close(),
  'is killed': (parts, client) => parts.kill(client.connection),
  'vanishes without a word': (parts, client) => parts.kill(client.connection, false),
  'closes its consumptions one by one': async (parts, _client, consumptions) => {
    for (const consumption of consumptions) await settled(parts, consumption.close());
  },
  'closes half of them and is killed': async (parts, client, consumptions) => {
    for (const consumption of consumptions.slice(10)) void consumption.close();
    await parts.settle();
    parts.kill(client.connection);
  },
  'is kicked by an operator': (parts, client) => {
    const { dispatcher } = parts.made;
    for (const peer of [...dispatcher.peers.values()]) if (peer.requests.size > 0) dispatcher.kick(peer.id);
    return client;
  },
};

for (const [what, leave] of Object.entries(ways)) {
  test(`F10: nothing but the groups is left of a consumer that ${what}, and what it held waits for others`, async () => {
    const parts = await queueParts({ ackTimeout: '8s' });
    const { world, dispatcher } = parts.made;
    await items(parts, parts.provider(), 5);
    const queue = dispatcher.queues.find(QUEUE)!;
    await parts.advance(5000);
    const timers = world.timers.size;
    const sessions = dispatcher.peers.size;
    const client = parts.client();
    const consumptions = Array.from({ length: 20 }, (_, index) => {
      const group = index % 2 === 0 ? {} : { group: `g${index % 6}` };
      const filter = index % 6 === 3 ? { filter: 'key == ""' } : {};
      return client.consume(QUEUE, { start: 'earliest', ack: 'manual', ...group, ...filter }, () => {});
    });
    await stored(parts);
    assert.equal(queue.privates.size, 10);
    const out = () => [...queue.allGroups()].reduce((sum, { outstanding }) => sum + outstanding, 0);
    assert.equal(out(), 13 * 5);
    await leave(parts, client, consumptions);
    await parts.advance(10_000);
    await client.close();
    await parts.advance(10_000);
    assert.deepEqual(parts.made.leftovers(), nothing);
    assert.deepEqual([dispatcher.peers.size, world.timers.size], [sessions, timers]);
    assert.deepEqual([out(), queue.privates.size], [0, 0]);
    for (const { members, waitingCount } of queue.groups.values()) {
      assert.deepEqual([members.length, waitingCount], [0, 5]);
    }
    // the groups are where they were: somebody else gets it all
    const other = await member(parts, { group: 'g1' });
    assert.deepEqual(numbers(other.got), [1, 2, 3, 4, 5]);
  });
}

test('F8: consume, close, consume in one turn: each message comes once, and nothing after close has returned', async () => {
  const parts = await queueParts();
  const client = parts.client();
  const first: QueueMessage[] = [];
  const second: QueueMessage[] = [];
  const options = { group: 'g', ack: 'manual', window: 10 } as const;
  const closed = client.consume(QUEUE, options, (message) => void first.push(message));
  void closed.close();
  const consumption = client.consume(QUEUE, options, (message) => void second.push(message));
  await items(parts, parts.provider(), 20);
  await stored(parts);
  assert.deepEqual([closed.state, consumption.state], ['ended', 'active']);
  assert.deepEqual([numbers(first), numbers(second)], [[], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]]);
  const group = parts.made.dispatcher.queues.find(QUEUE)!.groups.get('g')!;
  assert.deepEqual([group.members.length, group.outstanding], [1, 10]);
  await settled(parts, consumption.close());
  const other = await member(parts);
  assert.deepEqual(
    [second.length, other.got.length, other.got.every(({ deliveries }) => deliveries <= 2)],
    [10, 20, true],
  );
});

test('F14: two consumptions of one client in one group are two members; each ends alone', async () => {
  const parts = await queueParts();
  const client = parts.client();
  const got: QueueMessage[][] = [[], []];
  const [one, two] = got.map((seen) =>
    client.consume(QUEUE, { group: 'g', window: 4, ack: 'manual' }, (message) => void seen.push(message)),
  );
  await items(parts, parts.provider(), 8);
  await stored(parts);
  assert.deepEqual([got[0]!.length, got[1]!.length], [4, 4]);
  await settled(parts, Promise.all([one!.close(), one!.close()]));
  for (const message of got[1]!.splice(0)) await settled(parts, message.ack());
  await stored(parts);
  assert.equal(two!.state, 'active');
  assert.deepEqual(numbers(got[1]!), numbers(got[0]!), 'what the other one held comes to this one');
  for (const message of got[1]!) await settled(parts, message.ack());
  assert.equal(parts.made.dispatcher.queues.find(QUEUE)!.depth, 0);
});

test('F15: a consumer that was refused is over: it is not asked for again by the next session', async () => {
  const parts = await queueParts();
  const client = parts.client();
  const ends: string[] = [];
  for (const [code, options] of [
    [99, {}],
    [QUEUE, { filter: 'key ==' }],
  ] as const) {
    client.consume(code, { group: 'g', ...options }, () => {}).on('end', (error) => ends.push(error.code));
  }
  const sound = client.consume(QUEUE, { group: 'sound' }, () => {});
  await stored(parts);
  assert.deepEqual(ends, ['UNKNOWN_SERVICE', 'FILTER_INVALID']);
  const asked = () => parts.wire.filter(({ from, type }) => type === 'REQUEST' && !from.startsWith('from')).length;
  const before = asked();
  await parts.made.restart();
  await parts.advance(5000);
  assert.equal(sound.state, 'active');
  assert.equal(asked() - before, 1);
  assert.equal(ends.length, 2);
});
