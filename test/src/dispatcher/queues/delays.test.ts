import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Delays, MAX_STORED_DELAYS } from '../../../../dispatcher/dist/queues/delays.js';
import { Confirms, QueueWorld } from '../../support/queue-world.js';

test('a delay that a consumer asked for survives a restart, and so does the count', async () => {
  const world = await QueueWorld.start();
  const one = world.consume('g', 10);
  await world.store('a', 'b', 'c');
  one.nack(1, 2, 5000);
  await Promise.all([one.ack(3), world.settle()]);
  await world.crash();
  const next = world.consume('g', 10);
  await world.advance(2000);
  assert.deepEqual(next.sequences, []);
  assert.equal(world.queue.groups.get('g')!.waitingCount, 2);
  // the queues' time may have gone on by a second at the restart
  await world.advance(3000);
  assert.deepEqual(
    next.got.map(({ sequence, count }) => [sequence, count]),
    [
      [1, 2],
      [2, 2],
    ],
  );
});

test('a delay is stored without a commit of its own, and forgotten when it is over', async () => {
  const world = await QueueWorld.start();
  const one = world.consume('g', 10);
  await world.store('a');
  one.nack(1, 1, 5000);
  await world.advance(100);
  await world.crash();
  assert.equal(world.queue.groups.get('g')!.delays.stored.size, 1);
  const next = world.consume('g', 10);
  await world.advance(6000);
  await Promise.all([next.ack(1), world.settle()]);
  await world.crash();
  assert.equal(world.queue.groups.get('g')!.delays.size, 0);
});

test('only so many delays are stored; what is beyond comes at once after a restart', async () => {
  const world = await QueueWorld.start();
  const count = MAX_STORED_DELAYS + 10;
  const one = world.consume('g', count);
  await world.store(...Array.from({ length: count }, () => 'x'));
  one.nack(1, count, 60_000);
  await world.advance(100);
  await world.crash();
  const next = world.consume('g', count);
  await world.settle();
  assert.equal(next.got.length, 10);
  await Promise.all([next.ack(count - 9, count), world.settle()]);
  await world.advance(60_000);
  assert.equal(next.got.length, count);
});

test('what is purged or removed does not wait any more', async () => {
  const world = await QueueWorld.start();
  world.publish(['a', 'b', 'c'], 1, new Confirms(), 'p', { delayMs: 60_000 });
  await world.settle();
  const one = world.consume('g', 10);
  await world.store('d', 'e');
  one.nack(4, 5, 60_000);
  const group = world.queue.groups.get('g')!;
  assert.equal(group.waitingCount, 5);
  world.queue.remove(4);
  assert.equal(group.waitingCount, 4);
  world.queue.purge();
  assert.equal(group.waitingCount, 0);
  assert.equal(group.delays.size, 0);
  await world.settle();
});

test('delays come in order, whatever is taken out', () => {
  const operation = fc.oneof(
    fc.record({ add: fc.integer({ min: 1, max: 30 }), due: fc.integer({ min: 0, max: 100 }) }),
    fc.record({ from: fc.integer({ min: 1, max: 30 }), to: fc.integer({ min: 1, max: 30 }) }),
    fc.record({ now: fc.integer({ min: 0, max: 100 }) }),
  );
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 100 }), (operations) => {
      const delays = new Delays();
      const model = new Map<number, number>();
      for (const each of operations) {
        if ('add' in each) {
          if (model.has(each.add)) continue;
          delays.add(each.add, each.due, each.add % 2 === 0);
          model.set(each.add, each.due);
        } else if ('from' in each) {
          delays.remove(each.from, each.to);
          for (const sequence of [...model.keys()]) {
            if (sequence >= each.from && sequence <= each.to) model.delete(sequence);
          }
        } else {
          for (let next = delays.take(each.now); next !== undefined; next = delays.take(each.now)) {
            const due = model.get(next);
            assert.ok(due !== undefined && due <= each.now);
            assert.ok([...model.values()].every((other) => other >= due));
            model.delete(next);
          }
          assert.ok([...model.values()].every((due) => due > each.now));
        }
        assert.equal(delays.size, model.size);
        assert.equal(delays.earliest, model.size === 0 ? undefined : Math.min(...model.values()));
        assert.deepEqual(new Set(delays.stored.keys()), new Set([...model.keys()].filter((key) => key % 2 === 0)));
      }
    }),
  );
});
