import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Damage, Store, StoreContents } from '@trunkline/dispatcher/stores';
import { encodeMessage, Type } from '@trunkline/proto';
import { decodeGroup, encodeGroup } from '../../../../dispatcher/dist/queues/group-record.js';
import { Publisher } from '../../../../dispatcher/dist/queues/publisher.js';
import { Confirms, QueueWorld } from '../../support/queue-world.js';

/** What the disk holds, as the next process would find it. */
async function contents(world: QueueWorld): Promise<StoreContents> {
  world.queues.committer.close();
  for (const { queue } of world.queues.all()) queue.stopTimers();
  world.disk.crash();
  return world.disk.attach().open();
}

/** Starts again with what `change` makes of the store's contents. */
async function reopen(world: QueueWorld, change: (found: StoreContents) => StoreContents): Promise<void> {
  world.queues.committer.close();
  for (const { queue } of world.queues.all()) queue.stopTimers();
  world.disk.crash();
  const store: Store = world.disk.attach();
  const { open } = store;
  store.open = async () => change(await open.call(store));
  await world.open(store);
}

/** The queue is told as damaged from its first message on. */
async function damaged(world: QueueWorld, last: number): Promise<void> {
  const damage: Damage = { queue: 1, first: 1, last, message: 'it cannot be read' };
  await reopen(world, (found) => ({
    ...found,
    queues: found.queues.filter(({ queue }) => queue !== 1),
    damages: [damage],
  }));
}

test('of records in commits that failed together the newest counts', async () => {
  const world = await QueueWorld.start();
  const { options } = world.queues.entry(4001)!.declaration;
  await Promise.all([world.queues.declare({ code: 77, name: 'seven', options }), world.settle()]);
  world.disk.behaviour.flush = [20, 20];
  const changed = world.queues.declare({ code: 77, name: 'changed', options });
  await world.world.settle();
  const deleted = world.queues.delete(77);
  await world.world.settle();
  world.disk.failCommits(1);
  const outcomes = Promise.allSettled([changed, deleted]);
  await world.advance(50);
  assert.deepEqual(
    (await outcomes).map(({ status }) => status),
    ['rejected', 'rejected'],
  );
  world.disk.behaviour.flush = [0, 2];
  await world.advance(1000);
  await world.crash();
  assert.equal(world.queues.entry(77), undefined);
});

test('a queue that is deleted while its messages are on their way leaves no record behind', async () => {
  const world = await QueueWorld.start();
  const { options } = world.queues.entry(4001)!.declaration;
  await Promise.all([world.queues.declare({ code: 77, name: 'seven', options }), world.settle()]);
  const { inlet, id } = world.queues.find(77)!;
  world.disk.behaviour.flush = [20, 20];
  const confirms = new Confirms();
  const bytes = encodeMessage({ type: Type.PUBLISH, code: 77 }, 'a', {});
  inlet.publish(inlet.publisher('p'), bytes, 0, bytes.length, 1, 1, confirms);
  await world.world.settle();
  const deleted = world.queues.delete(77).catch(() => undefined);
  world.disk.failCommits(1);
  await world.advance(50);
  await deleted;
  world.disk.behaviour.flush = [0, 2];
  await world.advance(1000);
  const { records } = await contents(world);
  assert.deepEqual(
    [...records.keys()].filter((key) => key.includes(`/${id}`)),
    [],
  );
});

test('what is published in the step in which a damaged queue is purged is stored', async () => {
  const world = await QueueWorld.start();
  await world.store('a', 'b', 'c');
  await damaged(world, 3);
  const confirms = new Confirms();
  world.queue.purge();
  world.publish(['d'], 1, confirms, 'other');
  await world.settle();
  await world.advance(1000);
  assert.deepEqual([...confirms.sequences.values()], [4]);
  await world.crash();
  const one = world.consume('g');
  await world.settle();
  assert.deepEqual(
    one.got.map(({ sequence, body }) => `${sequence}:${body}`),
    ['4:d'],
  );
});

test('a purged queue goes on behind its old end, wherever the next kill falls', async () => {
  for (let ms = 0; ms < 60; ms += 10) {
    const world = await QueueWorld.start();
    await world.store('a', 'b', 'c');
    await damaged(world, 3);
    world.disk.behaviour.flush = [20, 20];
    // a message that fills the commit, in a queue that comes first
    const { inlet } = world.second;
    const large = encodeMessage({ type: Type.PUBLISH, code: 4002 }, 'x'.repeat(1_100_000), {});
    inlet.publish(inlet.publisher('p'), large, 0, large.length, 1, 1, new Confirms());
    world.queue.purge();
    await world.world.advance(ms);
    await world.crash();
    world.disk.behaviour.flush = [0, 2];
    assert.deepEqual([...(await world.store('d')).sequences.values()], [4], `killed after ${ms} ms`);
  }
});

test('a queue whose end is not known goes on behind what anybody was told of', async () => {
  const world = await QueueWorld.start();
  const one = world.consume('g', 10);
  await world.store('a', 'b', 'c');
  await Promise.all([one.ack(1), world.settle()]);
  await damaged(world, Number.MAX_SAFE_INTEGER);
  assert.equal(world.queue.last, 3);
  assert.equal(world.queue.depth, 3 - world.queue.floor);
  world.queue.purge();
  await world.settle();
  const next = world.consume('g', 10);
  const confirms = await world.store('d');
  assert.deepEqual([...confirms.sequences.values()], [4]);
  assert.deepEqual(next.sequences, [4]);
});

test('a store that goes on failing is told of once, and that it takes something again', async () => {
  const world = await QueueWorld.start();
  const said: string[] = [];
  world.say = (text) => void said.push(text);
  world.disk.failCommits(20);
  for (let round = 0; round < 8; round++) {
    await world.store('x');
    await world.advance(1000);
  }
  world.disk.failCommits(0);
  await world.advance(1000);
  assert.equal((await world.store('y')).refusals.size, 0);
  assert.deepEqual(said, ['the store takes nothing', 'the store takes messages again']);
});

test('what groups and publishers know of messages that are lost with the end of the queue counts for no later ones', async () => {
  const world = await QueueWorld.start();
  const one = world.consume('g', 10);
  await world.store('a', 'b', 'c');
  await Promise.all([one.ack(1), world.settle()]);
  await reopen(world, (found) => {
    const records = new Map(found.records);
    const state = decodeGroup(records.get('group/1/g')!);
    // as if 4 to 9 had been there: 5 and 6 done with, 7 delivered often, 8 waiting
    state.acked.add(5, 6);
    state.counts.set(7, 5).set(2, 3);
    state.delays.set(8, Number.MAX_SAFE_INTEGER);
    state.reserved = 9;
    records.set('group/1/g', encodeGroup(state));
    const publisher = Publisher.decode('p', new Publisher('p').encode());
    const run = { publisher, buffer: new Uint8Array(), start: 0, end: 0, count: 6, confirm: new Confirms() };
    publisher.assigned({ ...run, number: 1, sequence: 4 });
    records.set('publisher/1/p', publisher.encode());
    return { ...found, records };
  });
  assert.match(world.queues.damages[0]!.message, /done with message 6, and the queue ends at 3/);
  const next = world.consume('g', 20);
  await world.settle();
  const again = new Confirms();
  world.publish(['d', 'e', 'f', 'g', 'h', 'i'], 1, again, 'p');
  await world.settle();
  assert.deepEqual([...again.sequences.values()], [4, 5, 6, 7, 8, 9]);
  assert.deepEqual(
    next.got.map(({ sequence, body, count }) => `${sequence}:${body}:${count}`),
    ['2:b:4', '3:c:2', '4:d:1', '5:e:1', '6:f:1', '7:g:1', '8:h:1', '9:i:1'],
  );
});

test('a group that was past the end of its queue gets what is published next', async () => {
  const world = await QueueWorld.start();
  world.consume('g', 10);
  await world.store('a', 'b', 'c');
  await reopen(world, (found) => {
    const records = new Map(found.records);
    const state = decodeGroup(records.get('group/1/g')!);
    records.set('group/1/g', encodeGroup({ ...state, position: 50, reserved: 60, counts: new Map() }));
    return { ...found, records };
  });
  const next = world.consume('g', 10);
  await world.store('d');
  assert.deepEqual(next.sequences, [4]);
});

test('what is in commits on their way counts for the bound of bytes', async () => {
  const world = await QueueWorld.start({ maxBytes: 3000 });
  world.disk.behaviour.flush = [20, 20];
  const confirms = new Confirms();
  for (let number = 1; number <= 6; number++) {
    world.publish(['x'.repeat(900)], number, confirms);
    await world.world.settle();
  }
  await world.advance(200);
  assert.equal(confirms.sequences.size, 3);
  assert.equal(confirms.refusals.size, 3);
  assert.ok(world.queue.bytes <= 3000);
});

test('what an operator took out does not wait for a group', async () => {
  const world = await QueueWorld.start();
  const one = world.consume('g', 1);
  await world.store('a', 'b', 'c', 'd');
  const group = world.queue.groups.get('g')!;
  assert.equal(group.waitingCount, 3);
  world.queue.remove(3);
  assert.equal(group.waitingCount, 2);
  await Promise.all([one.ack(1), world.settle()]);
  assert.equal(group.waitingCount, 1);
});
