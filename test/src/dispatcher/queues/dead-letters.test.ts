import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { QueueOptions } from '@trunkline/dispatcher';
import { DataMessage, OFFSET, readU32, readU53 } from '@trunkline/proto';
import { Confirms, QueueWorld } from '../../support/queue-world.js';

const DEAD = 4002;

interface Grave {
  readonly sequence: number;
  readonly count: number;
  readonly reason: string;
}

/** What is in the dead letter queue. */
async function graves(world: QueueWorld): Promise<Grave[]> {
  const found: Grave[] = [];
  const { second } = world;
  for (let next = second.floor + 1; next <= second.last; ) {
    const loading = second.chunks.load(next);
    await world.settle();
    const chunk = (await loading)!;
    for (let at = chunk.offsetOf(next); at < chunk.bytes.length; at += readU32(chunk.bytes, at)) {
      const { attrs } = new DataMessage(chunk.bytes, at).meta;
      found.push({
        sequence: Number(attrs.deadSequence),
        count: Number(attrs.deadCount),
        reason: String(attrs.deadReason),
      });
      next = readU53(chunk.bytes, at + OFFSET.sequence) + 1;
    }
  }
  return found;
}

const start = (options: Partial<QueueOptions> = {}) => QueueWorld.start({ deadLetter: DEAD, ...options });

test('a kill at any moment leaves a dead letter in one place: there, or here', async () => {
  let there = 0;
  for (let ms = 0; ms < 40; ms++) {
    const world = await start({ maxDeliveries: 1 });
    const one = world.consume('g', 10);
    await world.store('bad', 'good', 'bad too');
    await Promise.all([one.ack(2), world.settle()]);
    // what of a commit under way reaches the disk is chosen by chance
    for (let skipped = 0; skipped < ms; skipped++) world.world.random.next();
    world.disk.behaviour.flush = [8, 8];
    one.nack(1);
    one.nack(3);
    await world.world.advance(ms);
    await world.crash();
    world.disk.behaviour.flush = [0, 2];
    there += world.second.depth;
    const again = world.consume('g', 10);
    await world.settle();
    again.nack(1, 3);
    await world.settle();
    const numbers = (await graves(world)).map(({ sequence }) => sequence);
    assert.deepEqual(numbers.sort(), [1, 3], `killed after ${ms} ms`);
    assert.equal(world.queue.depth, 0);
  }
  assert.ok(there > 0 && there < 80, `${there} letters were there after the kill`);
});

test('a group whose first messages are dead letters on their way has a record that can be read', async () => {
  const world = await start({ maxDeliveries: 2 });
  const one = world.consume('g', 10);
  await world.store('a', 'b', 'c');
  one.nack(1, 2);
  await world.settle();
  world.disk.behaviour.flush = [20, 20];
  one.nack(1, 2);
  await world.world.settle();
  void one.ack(3);
  await world.world.advance(50);
  await world.crash();
  assert.deepEqual(world.queues.damages, []);
  assert.ok(world.queue.groups.get('g')!.isDone(2));
  assert.equal(world.second.depth, 2);
});

test('a dead letter that finds no place stays here and is brought again', async () => {
  const world = await start({ maxDeliveries: 1 });
  const one = world.consume('g', 10);
  await world.store('bad', 'good');
  world.second.reconfigure({ ...world.second.options, maxMessages: 1 });
  one.nack(1, 2);
  await world.settle();
  await world.advance(1500);
  assert.deepEqual(
    (await graves(world)).map(({ sequence }) => sequence),
    [1],
  );
  assert.equal(world.queue.groups.get('g')!.waitingCount, 1);
  world.second.purge();
  await world.advance(1500);
  assert.deepEqual(
    (await graves(world)).map(({ sequence }) => sequence),
    [2],
  );
  assert.equal(world.queue.depth, 0);
});

test('a missing dead letter queue is told once, not each time', async () => {
  const world = await start({ maxDeliveries: 1, deadLetter: 4999 });
  const said: string[] = [];
  world.say = (text) => void said.push(text);
  const one = world.consume('g', 10);
  await world.store('a', 'b', 'c');
  one.nack(1, 3);
  for (let round = 0; round < 5; round++) await world.advance(1000);
  assert.deepEqual(said, ['messages cannot be brought to their dead letter queue']);
  const { options } = world.second;
  await Promise.all([world.queues.declare({ code: 4999, name: 'dead', options }), world.settle()]);
  await world.advance(1000);
  assert.equal(world.queues.find(4999)!.depth, 3);
});

test('what expires before a group got it goes to the dead letter queue, for each group', async () => {
  const world = await start();
  const confirms = new Confirms();
  world.publish(['short', 'short too'], 1, confirms, 'p', { ttlMs: 500 });
  world.publish(['plain'], 3, confirms, 'p');
  await world.settle();
  const slow = world.consume('slow', 1);
  await world.settle();
  assert.deepEqual(slow.sequences, [1]);
  await world.advance(600);
  const late = world.consume('late', 10);
  await world.settle();
  assert.deepEqual(late.sequences, [3]);
  // delivered once, and too old to come again
  slow.nack(1);
  await world.settle();
  assert.deepEqual(slow.sequences, [1, 3]);
  const found = (await graves(world)).sort((one, other) => one.sequence - other.sequence || one.count - other.count);
  assert.deepEqual(found, [
    { sequence: 1, count: 0, reason: 'expired' },
    { sequence: 1, count: 1, reason: 'expired' },
    { sequence: 2, count: 0, reason: 'expired' },
    { sequence: 2, count: 0, reason: 'expired' },
  ]);
  await Promise.all([slow.ack(3), late.ack(3), world.settle()]);
  assert.equal(world.queue.depth, 0);
});

test('thousands of expired messages pass a group without being all in memory at once', async () => {
  const world = await start();
  const most = 4000;
  let number = 1;
  for (let round = 0; round < 10; round++) {
    const bodies = Array.from({ length: most / 10 }, () => 'x'.repeat(100));
    world.publish(bodies, number, new Confirms(), 'p', { ttlMs: 500 });
    number += bodies.length;
    await world.settle();
  }
  await world.advance(600);
  const one = world.consume('g', 10);
  let largest = 0;
  const { append } = world.second.inlet;
  let waiting = 0;
  world.second.inlet.append = (message, confirm) => {
    largest = Math.max(largest, ++waiting);
    append.call(world.second.inlet, message, {
      ...confirm,
      stored: (...told) => {
        waiting--;
        confirm.stored(...told);
      },
    });
  };
  for (let round = 0; round < 30 && world.queue.depth > 0; round++) await world.advance(10);
  assert.equal(world.queue.depth, 0);
  assert.equal(world.second.depth, most);
  assert.ok(largest <= 256, `${largest} letters at once`);
  assert.deepEqual(one.sequences, []);
});
