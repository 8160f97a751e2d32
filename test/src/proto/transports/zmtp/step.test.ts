import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LONGEST_TURN } from '@trunkline/proto';
import { settingsOf, type TransportOptions } from '../../../../../proto/dist/transports/settings.js';
import { Step } from '../../../../../proto/dist/transports/zmtp/step.js';

/** A step, the batches of each that ended, and the clock. */
function made(t: TestContext, options: TransportOptions = {}) {
  let now = 1000;
  t.mock.method(performance, 'now', () => now);
  const received: number[] = [];
  const settings = { ...settingsOf(options), received: (bytes: number) => void received.push(bytes) };
  const ends: number[] = [];
  let batches = 0;
  const owner = {
    stepEnd() {
      ends.push(batches);
      batches = 0;
    },
  };
  const step = new Step(owner, settings);
  const take = (bytes: number) => {
    step.begin();
    batches++;
    step.took(bytes);
  };
  return { step, take, ends, received, owner, settings, pass: (ms: number) => (now += ms) };
}

test('all batches of a turn are one step, told of at its end', async (t) => {
  const { take, ends, received } = made(t);
  for (let count = 0; count < 5; count++) take(10);
  assert.deepEqual(ends, []);
  await nextTurn();
  assert.deepEqual([ends, received], [[5], [50]]);
  await nextTurn();
  assert.deepEqual(ends, [5], 'a turn without batches is no step');
  take(1);
  await nextTurn();
  assert.deepEqual(
    [ends, received],
    [
      [5, 1],
      [50, 1],
    ],
  );
});

test('a step is full at its number of batches, or of bytes', async (t) => {
  const { take, ends, received } = made(t, { stepBatches: 3, stepBytes: 100 });
  for (let count = 0; count < 7; count++) take(1);
  assert.deepEqual(ends, [3, 3]);
  take(98);
  take(0);
  assert.deepEqual(ends, [3, 3, 3]);
  take(500);
  assert.deepEqual(
    [ends, received],
    [
      [3, 3, 3, 1],
      [3, 3, 99, 500],
    ],
  );
  await nextTurn();
  assert.equal(ends.length, 4, 'and nothing is left of it');
});

test('a turn is overdue after its time, in however many steps it went', async (t) => {
  const { step, take, pass } = made(t, { stepBatches: 2 });
  assert.equal(step.overdue, false);
  for (let count = 0; count < 5; count++) {
    take(1);
    assert.equal(step.overdue, false);
    pass(LONGEST_TURN / 5);
  }
  pass(1);
  take(1);
  assert.equal(step.overdue, true);
  let resumed = 0;
  step.later(() => {
    resumed++;
    assert.equal(step.overdue, false);
  });
  step.later(() => resumed++);
  assert.equal(resumed, 0);
  await nextTurn();
  assert.equal(resumed, 2);
  take(1);
  assert.equal(step.overdue, false, 'time counts from the turn');
  await nextTurn();
  assert.equal(resumed, 2);
});

test('an owner that throws at the end of a step is counted, and the next step is as ever', async (t) => {
  const { take, owner, settings, received } = made(t);
  owner.stepEnd = () => {
    throw new Error('broken receiver');
  };
  take(1);
  await nextTurn();
  take(2);
  await nextTurn();
  assert.equal(settings.counters.faults, 2);
  assert.deepEqual(received, [1, 2]);
});
