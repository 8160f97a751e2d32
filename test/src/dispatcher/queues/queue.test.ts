import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Store, StoreContents } from '@trunkline/dispatcher/stores';
import { Confirms, QueueWorld } from '../../support/queue-world.js';

const bodies = (count: number, from = 1) => Array.from({ length: count }, (_, index) => `m${from + index}`);
const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

test('what is published is confirmed with its sequence once it is stored, and delivered in order', async () => {
  const world = await QueueWorld.start();
  const consumer = world.consume('g', 100);
  const confirms = new Confirms();
  world.publish(bodies(5), 1, confirms);
  assert.equal(confirms.sequences.size, 0);
  await world.settle();
  assert.deepEqual(
    [...confirms.sequences],
    numbers(1, 5).map((each) => [each, each]),
  );
  assert.deepEqual(consumer.sequences, numbers(1, 5));
  assert.deepEqual(
    consumer.got.map(({ body, count }) => `${body}:${count}`),
    bodies(5).map((body) => `${body}:1`),
  );
});

test('a publish that is repeated is stored once, also across a crash', async () => {
  const world = await QueueWorld.start();
  const confirms = new Confirms();
  world.publish(bodies(3), 1, confirms);
  await world.settle();
  await world.crash();
  const again = new Confirms();
  world.publish(bodies(5), 1, again);
  const once = new Confirms();
  world.publish(bodies(5), 1, once);
  await world.settle();
  assert.equal(world.queue.last, 5);
  for (const confirmed of [again, once]) assert.deepEqual([...confirmed.sequences.values()].sort(), numbers(1, 5));
});

test('members hold no more than their window, the one with the fewest gets the next', async () => {
  const world = await QueueWorld.start();
  const one = world.consume('g', 4);
  const other = world.consume('g', 4);
  await world.store(...bodies(20));
  assert.equal(one.got.length, 4);
  assert.equal(other.got.length, 4);
  const [first] = other.sequences;
  assert.equal(await Promise.all([other.ack(first!), world.settle()]).then(([failed]) => failed), 0);
  assert.equal(other.got.length, 5);
  assert.equal(one.got.length, 4);
});

test('what a member held goes to another one in order, before new messages, marked and counted (F72, F75)', async () => {
  const world = await QueueWorld.start();
  const one = world.consume('g', 5);
  await world.store(...bodies(8));
  assert.deepEqual(one.sequences, numbers(1, 5));
  one.member.leave();
  const other = world.consume('g', 100);
  await world.settle();
  assert.deepEqual(other.sequences, numbers(1, 8));
  assert.deepEqual(
    other.got.map(({ count }) => count),
    [2, 2, 2, 2, 2, 1, 1, 1],
  );
});

test('nack, timeout and lost session follow one rule (F72)', async () => {
  for (const way of ['nack', 'timeout', 'lost'] as const) {
    const world = await QueueWorld.start({ ackTimeout: 1000 });
    const one = world.consume('g', 5);
    await world.store(...bodies(8));
    one.take();
    if (way === 'nack') one.nack(2, 4);
    else if (way === 'timeout') {
      await world.advance(900);
      await Promise.all([one.ack(1), one.ack(5), world.settle()]);
      one.ready = false;
      await world.advance(200);
      one.ready = true;
      one.member.wake();
    } else {
      void one.ack(1);
      void one.ack(5);
      one.member.leave();
    }
    const reader = way === 'lost' ? world.consume('g', 5) : one;
    await world.settle();
    const back = reader.got.filter(({ redelivered }) => redelivered).map(({ sequence }) => sequence);
    assert.deepEqual(back.slice(0, 3), [2, 3, 4], way);
  }
});

test('late, double, foreign and unknown acknowledgements fail alone (F77)', async () => {
  const world = await QueueWorld.start();
  const one = world.consume('g', 3);
  const other = world.consume('g', 3);
  await world.store(...bodies(6));
  const mine = one.sequences;
  const acked = async (consumer: typeof one, first: number, last = first) =>
    (await Promise.all([consumer.ack(first, last), world.settle()]))[0];
  assert.equal(await acked(one, mine[0]!), 0);
  assert.equal(await acked(one, mine[0]!), 1);
  assert.equal(await acked(one, other.sequences[0]!), 1);
  assert.equal(await acked(one, 10_000, 10_002), 3);
  assert.equal(one.nack(mine[0]!), 1);
  assert.equal(one.member.held.size + other.member.held.size, 5);
});

test('a confirmed acknowledgement survives a crash, what was out comes back counted, the count never falls', async () => {
  const world = await QueueWorld.start();
  const one = world.consume('g', 10);
  await world.store(...bodies(10));
  await Promise.all([one.ack(1, 3), one.ack(5), world.settle()]);
  let least = 2;
  for (let round = 0; round < 4; round++) {
    await world.crash();
    const next = world.consume('g', 10);
    await world.settle();
    assert.deepEqual(next.sequences, [4, 6, 7, 8, 9, 10]);
    for (const { count } of next.got) assert.ok(count >= least, `count ${count} in round ${round}`);
    least = Math.max(...next.got.map(({ count }) => count)) + 1;
  }
});

test('restarts without a consumer do not count as deliveries', async () => {
  const world = await QueueWorld.start({ maxDeliveries: 3, deadLetter: 4002 });
  const one = world.consume('g', 10);
  await world.store('a');
  assert.equal(one.got.length, 1);
  for (let round = 0; round < 5; round++) await world.crash();
  const next = world.consume('g', 10);
  await world.settle();
  assert.deepEqual(
    next.got.map(({ count }) => count),
    [2],
  );
});

test('after maxDeliveries a message goes to the dead letter queue with its story', async () => {
  const world = await QueueWorld.start({ maxDeliveries: 2, deadLetter: 4002 });
  const one = world.consume('g', 10);
  await world.store('bad', 'good');
  one.nack(1);
  await world.settle();
  one.nack(1);
  await world.settle();
  assert.deepEqual(one.sequences, [1, 2, 1]);
  assert.equal(world.second.last, 1);
  const [chunk] = [world.second.chunks.find(1)!];
  const text = new TextDecoder().decode(chunk.bytes);
  for (const part of ['deadReason', 'deadOrigin', 'deadCount', 'bad']) assert.ok(text.includes(part), part);
  assert.equal(world.queue.groups.get('g')!.deadLettered, 1);
  assert.ok(world.queue.groups.get('g')!.isDone(1));
});

test('a nack may ask for a delay, and the time survives neither less nor more', async () => {
  const world = await QueueWorld.start();
  const one = world.consume('g', 10);
  await world.store('a', 'b');
  one.nack(1, 1, 5000);
  await world.advance(4900);
  assert.deepEqual(one.sequences, [1, 2]);
  await world.advance(200);
  assert.deepEqual(one.sequences, [1, 2, 1]);
});

test('ttl and delay of messages', async () => {
  const world = await QueueWorld.start();
  const confirms = new Confirms();
  world.publish(['late'], 1, confirms, 'p', { delayMs: 1000 });
  world.publish(['short'], 2, confirms, 'p', { ttlMs: 500 });
  world.publish(['plain'], 3, confirms, 'p');
  const one = world.consume('g', 10);
  await world.settle();
  assert.deepEqual(
    one.got.map(({ body }) => body),
    ['short', 'plain'],
  );
  await world.advance(1100);
  assert.deepEqual(
    one.got.map(({ body, count }) => `${body}:${count}`),
    ['short:1', 'plain:1', 'late:1'],
  );
  const late = world.consume('h', 10);
  await world.settle();
  assert.deepEqual(
    late.got.map(({ body }) => body),
    ['late', 'plain'],
  );
});

test('times are right when the date went back an hour at a restart (F56)', async () => {
  const world = await QueueWorld.start();
  world.publish(['short'], 1, new Confirms(), 'p', { ttlMs: 600_000 });
  await world.settle();
  world.date -= 3_600_000;
  await world.crash();
  const one = world.consume('g');
  await world.settle();
  assert.deepEqual(one.sequences, [1]);
  one.member.leave();
  await world.advance(700_000);
  const other = world.consume('h');
  await world.settle();
  assert.deepEqual(other.sequences, []);
});

test('groups have positions of their own; a private one ends with its member', async () => {
  const world = await QueueWorld.start();
  await world.store(...bodies(4));
  const one = world.consume('one');
  const two = world.consume('two', 10, { start: { after: 2 } });
  const live = world.consume('', 10, { start: 'latest' });
  await world.settle();
  await world.store('m5');
  assert.deepEqual([one.sequences, two.sequences, live.sequences], [numbers(1, 5), numbers(3, 5), [5]]);
  live.member.leave();
  assert.equal(world.queue.privates.size, 0);
  await Promise.all([one.ack(1, 5), two.ack(3, 4), world.settle()]);
  assert.equal(world.queue.floor, 4);
  await world.crash();
  assert.equal(world.queue.depth, 1);
});

test('filters are the group’s', async () => {
  const world = await QueueWorld.start();
  const one = world.consume('g', 10, { filter: 'x' });
  await world.store('ax', 'b', 'cx');
  assert.deepEqual(one.sequences, [1, 3]);
  assert.throws(() => world.consume('g', 10, { filter: 'b' }), { code: 'FILTER_INVALID' });
  const other = world.consume('g', 10);
  await Promise.all([one.ack(1), one.ack(3), world.settle()]);
  await world.store('d', 'ex');
  assert.equal(one.got.length + other.got.length, 3);
  one.member.leave();
  other.member.leave();
  await world.settle();
  await world.crash();
  await world.store('fx', 'g');
  const later = world.consume('g', 10);
  await world.settle();
  assert.deepEqual(later.sequences, [5, 6]);
});

test('over its bound a queue refuses, or drops the oldest and tells its groups', async () => {
  const refusing = await QueueWorld.start({ maxMessages: 3 });
  const confirms = await refusing.store(...bodies(5));
  assert.deepEqual([...confirms.sequences.keys()], [1, 2, 3]);
  assert.deepEqual(
    [...confirms.refusals.values()].map(({ code }) => code),
    ['QUEUE_FULL', 'QUEUE_FULL'],
  );
  const one = refusing.consume('g');
  await refusing.settle();
  await Promise.all([one.ack(1, 2), refusing.settle()]);
  assert.deepEqual([...(await refusing.store('x', 'y')).sequences.values()], [4, 5]);

  for (const storage of ['memory', 'disk'] as const) {
    const ring = await QueueWorld.start({ maxMessages: 3, full: 'dropOldest', storage });
    const slow = ring.consume('g', 1);
    await ring.store('m1');
    await ring.store(...bodies(9, 2));
    assert.deepEqual(slow.sequences, [1]);
    assert.equal(ring.queue.floor, 7);
    assert.deepEqual(slow.lost, [{ count: 6, first: 2, last: 7, reason: 'retention' }]);
    assert.equal((await Promise.all([slow.ack(1), ring.settle()]))[0], 0);
    assert.deepEqual(slow.sequences, [1, 8]);
  }
});

test('messages grow too old', async () => {
  const world = await QueueWorld.start({ maxAge: 10_000 });
  await world.store('a', 'b');
  await world.advance(6000);
  await world.store('c');
  await world.advance(6000);
  assert.equal(world.queue.floor, 2);
  await world.crash();
  await world.advance(12_000);
  assert.equal(world.queue.depth, 0);
});

test('a full store refuses publishes with a code; deliveries and acknowledgements go on, and it resumes by itself', async () => {
  const world = await QueueWorld.start();
  const one = world.consume('g', 10);
  await world.store(...bodies(10));
  world.disk.behaviour.capacity = 1;
  const refused = await world.store('x');
  assert.equal(refused.refusals.get(11)?.code, 'STORE_FULL');
  assert.equal((await Promise.all([one.ack(1, 5), world.settle()]))[0], 0);
  one.nack(6);
  await world.settle();
  assert.equal(one.got.at(-1)?.sequence, 6);
  world.disk.behaviour.capacity = Number.POSITIVE_INFINITY;
  await world.advance(600);
  const stored = await world.store('y');
  assert.deepEqual([...stored.sequences.values()], [11]);
});

test('a store that fails is tried again, and nothing is lost', async () => {
  const world = await QueueWorld.start();
  const one = world.consume('g', 10);
  await world.store('a', 'b');
  world.disk.failCommits(1);
  const refused = await world.store('c');
  assert.equal(refused.refusals.get(3)?.code, 'STORE_FAILED');
  let acked = false;
  void one.ack(1).then(() => {
    acked = true;
  });
  await world.advance(1000);
  assert.ok(acked);
  assert.deepEqual([...(await world.store('d')).sequences.values()], [3]);
  assert.deepEqual(one.sequences, [1, 2, 3]);
});

test('readers that are behind are served from the store; what cannot be read is told and passed over', async () => {
  const world = await QueueWorld.start();
  for (let round = 0; round < 10; round++) await world.store(...bodies(10, round * 10));
  await world.crash();
  world.disk.damage(1, 31, 40);
  const one = world.consume('g', 1000);
  await world.settle();
  await world.settle();
  assert.deepEqual(one.sequences, [...numbers(1, 30), ...numbers(41, 100)]);
  assert.deepEqual(one.lost, [{ count: 10, first: 31, last: 40, reason: 'damaged' }]);
});

test('purge, remove, redeliver, delete', async () => {
  const world = await QueueWorld.start();
  const one = world.consume('g', 2);
  await world.store(...bodies(5));
  assert.ok(world.queue.remove(4));
  assert.ok(!world.queue.remove(4));
  assert.equal(world.queue.groups.get('g')!.redeliver(), 2);
  await world.settle();
  assert.deepEqual(
    one.got.map(({ sequence, count }) => [sequence, count]),
    [
      [1, 1],
      [2, 1],
      [1, 2],
      [2, 2],
    ],
  );
  await Promise.all([one.ack(1, 2), world.settle()]);
  assert.deepEqual(
    one
      .take()
      .slice(4)
      .map(({ sequence }) => sequence),
    [3, 5],
  );
  await world.store(...bodies(3));
  // 3 and 5 to 8: 1 and 2 are acknowledged, 4 was removed
  assert.equal(world.queue.purge(), 5);
  await world.settle();
  await world.crash();
  assert.equal(world.queue.depth, 0);
  assert.deepEqual([...(await world.store('z')).sequences.values()], [9]);
});

test('declared at run time: survives a restart, can be changed and deleted', async () => {
  const world = await QueueWorld.start();
  const { options } = world.queues.entry(4001)!.declaration;
  await Promise.all([world.queues.declare({ code: 77, name: 'seven', options }), world.settle()]);
  await world.crash();
  assert.equal(world.queues.entry(77)?.declaration.name, 'seven');
  await Promise.all([world.queues.delete(77), world.settle()]);
  await world.crash();
  assert.equal(world.queues.entry(77), undefined);
  await assert.rejects(world.queues.delete(4001), { code: 'OPTION_INVALID' });
  assert.equal(world.queues.time() >= world.date, true);
});

test('a queue with a damaged part gives what can be read and takes nothing until it is purged; others go on', async () => {
  const world = await QueueWorld.start();
  for (let round = 0; round < 3; round++) await world.store(...bodies(5));
  await world.crash();
  world.queues.committer.close();
  world.disk.crash();
  const store: Store = world.disk.attach();
  const damage = { queue: 1, first: 6, last: 10, message: 'messages 6 to 10 cannot be read' };
  world.disk.damage(1, 6, 10);
  const { open } = store;
  store.open = async (): Promise<StoreContents> => {
    const contents = await open.call(store);
    return { ...contents, queues: contents.queues.filter(({ queue }) => queue !== 1), damages: [damage] };
  };
  await world.open(store);
  assert.equal(world.queues.damages.length, 1);
  const one = world.consume('g', 100);
  const refused = await world.store('x');
  assert.deepEqual(
    [...refused.refusals.values()].map(({ code }) => code),
    ['STORE_DAMAGED'],
  );
  await world.settle();
  assert.deepEqual(one.sequences, [...numbers(1, 5), ...numbers(11, 15)]);
  assert.deepEqual(one.lost, [{ count: 5, first: 6, last: 10, reason: 'damaged' }]);
  world.queue.purge();
  await world.settle();
  assert.deepEqual([...(await world.store('y')).sequences.values()], [16]);
});

test('of a publisher that is not remembered any more nothing is known', async () => {
  const world = await QueueWorld.start();
  const confirms = new Confirms();
  for (let number = 1; number <= 1100; number++) {
    // two publishers in turn: every message is a range of its own
    world.publish([`a${number}`], number, confirms, 'a');
    world.publish([`b${number}`], number, new Confirms(), 'b');
    if (number % 100 === 0) await world.settle();
  }
  await world.settle();
  const again = new Confirms();
  world.publish(['a1'], 1, again, 'a');
  world.publish(['a1100'], 1100, again, 'a');
  await world.settle();
  assert.equal(again.sequences.get(1100), confirms.sequences.get(1100));
  assert.ok(again.refusals.get(1) !== undefined || again.sequences.get(1) === confirms.sequences.get(1));
  for (let index = 0; index < 1100; index++) {
    world.publish(['x'], 1, new Confirms(), `many-${index}`);
    if (index % 100 === 0) await world.settle();
  }
  await world.settle();
  assert.ok(world.queue.inlet.publishers.size <= 1024);
  assert.ok(world.queue.inlet.publishers.has('many-1099'));
});

test('with retain, what every group is past stays for groups that come later, until there is no room', async () => {
  const world = await QueueWorld.start({ retain: 10_000, maxMessages: 6 });
  await world.store('a', 'b', 'c');
  const one = world.consume('g');
  await world.settle();
  await Promise.all([one.ack(1, 3), world.settle()]);
  assert.equal(world.queue.depth, 3);
  const late = world.consume('h');
  await world.settle();
  assert.deepEqual(late.sequences, [1, 2, 3]);
  await Promise.all([late.ack(1, 3), world.settle()]);
  await world.advance(12_000);
  assert.equal(world.queue.depth, 0);
  await world.store(...bodies(5));
  await Promise.all([one.ack(4, 8), late.ack(4, 8), world.settle()]);
  const confirms = await world.store(...bodies(4));
  assert.equal(confirms.refusals.size, 0);
  assert.equal(world.queue.depth, 4);
});
