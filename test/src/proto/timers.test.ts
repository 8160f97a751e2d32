import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_DELAY, Timer, Timers, TrunklineError } from '@trunkline/proto';
import fc from 'fast-check';

class ManualClock {
  time: number;
  constructor(time = 0) {
    this.time = time;
  }
  now(): number {
    return this.time;
  }
}

/** Calls `advance` only when the alarm says so, as a driver does. */
class ManualAlarm {
  at: number | undefined;
  sets = 0;
  set(deadline: number): void {
    this.at = deadline;
    this.sets++;
  }
  clear(): void {
    this.at = undefined;
  }
}

function setUp(time = 0) {
  const clock = new ManualClock(time);
  const alarm = new ManualAlarm();
  const timers = new Timers(clock, alarm);
  const fired: number[] = [];
  const owner = { onTimer: (timer: Timer) => void fired.push(timer.kind) };
  const make = (kind: number) => new Timer(owner, kind);
  const advanceTo = (to: number) => {
    clock.time = to;
    timers.advance();
  };
  return { clock, alarm, timers, fired, make, advanceTo };
}

test('fires in deadline order, ties in start order, never early', () => {
  const { timers, fired, make, advanceTo } = setUp(0.25);
  for (const [kind, delay] of [40, 5, 5, 70_000, 5.5, 0.1].entries()) timers.start(make(kind), delay);
  advanceTo(0.9);
  assert.deepEqual(fired, []);
  advanceTo(1);
  assert.deepEqual(fired, [5]);
  advanceTo(5.3); // 0.25 + 5 has passed, the whole millisecond has not
  assert.deepEqual(fired, [5]);
  advanceTo(1e9);
  assert.deepEqual(fired, [5, 1, 2, 4, 0, 3]);
  assert.equal(timers.size, 0);
  assert.equal(timers.nextDeadline(), undefined);
});

test('timers of one deadline keep their order through every level of the wheel', () => {
  const { timers, fired, make, advanceTo } = setUp();
  const deadline = 2 ** 21 + 3;
  let kind = 0;
  for (const at of [0, 1, 31, 32, 1023, 1024, 2 ** 20 - 1, 2 ** 20, 2 ** 21 - 1, 2 ** 21, deadline - 1]) {
    advanceTo(at);
    timers.start(make(kind++), deadline - at);
    timers.start(make(kind++), deadline - at);
  }
  advanceTo(deadline - 0.001);
  assert.deepEqual(fired, []);
  advanceTo(deadline);
  assert.deepEqual(
    fired,
    Array.from({ length: kind }, (_, index) => index),
  );
});

test('restart moves a timer, stop is idempotent', () => {
  const { timers, fired, make, advanceTo, alarm } = setUp();
  const [a, b] = [make(1), make(2)];
  timers.start(a, 10);
  timers.start(b, 10);
  timers.start(a, 10); // now behind b
  assert.equal(timers.size, 2);
  advanceTo(10);
  assert.deepEqual(fired, [2, 1]);
  timers.start(a, 10);
  timers.start(a, 100);
  advanceTo(50);
  assert.equal(a.active, true);
  timers.stop(a);
  timers.stop(a);
  assert.equal(a.active, false);
  assert.equal(timers.size, 0);
  assert.equal(alarm.at, undefined);
  advanceTo(1000);
  assert.deepEqual(fired, [2, 1]);
});

test('a delay out of range is refused and changes nothing (F54, F57)', () => {
  const { timers, fired, make, advanceTo } = setUp();
  const timer = make(1);
  timers.start(timer, 5);
  for (const delay of [Number.NaN, Number.POSITIVE_INFINITY, -1, -0.1, MAX_DELAY + 1, 1e12, '5' as unknown as number])
    assert.throws(
      () => timers.start(timer, delay),
      (error) => error instanceof TrunklineError && error.code === 'OPTION_INVALID',
    );
  assert.equal(timers.nextDeadline(), 5);
  advanceTo(5);
  assert.deepEqual(fired, [1]);
  timers.start(timer, MAX_DELAY);
  advanceTo(5 + MAX_DELAY - 1);
  assert.deepEqual(fired, [1]);
  advanceTo(5 + MAX_DELAY);
  assert.deepEqual(fired, [1, 1]);
});

test('a delay of 0 that is started again and again fires once for each advance', () => {
  const { clock, timers, advanceTo } = setUp(7.6);
  let count = 0;
  const timer: Timer = new Timer({
    onTimer: () => {
      count++;
      timers.start(timer, 0);
      timers.advance(); // from an owner: nothing
    },
  });
  timers.start(timer, 0);
  assert.equal(timers.nextDeadline(), 7);
  for (let round = 1; round <= 3; round++) {
    timers.advance();
    assert.equal(count, round);
  }
  advanceTo(clock.time + 1e7);
  assert.equal(count, 4);
  assert.equal(timers.size, 1);
});

test('an owner may stop and restart others that are due', () => {
  const { timers, clock } = setUp();
  const fired: number[] = [];
  const owner = {
    onTimer(timer: Timer) {
      fired.push(timer.kind);
      if (timer.kind !== 0) return;
      timers.stop(all[1]!);
      timers.start(all[2]!, 1);
      timers.stop(all[4]!);
      timers.start(all[4]!, 0);
    },
  };
  const all = [0, 1, 2, 3, 4].map((kind) => new Timer(owner, kind));
  for (const timer of all) timers.start(timer, timer.kind < 3 ? 10 : 20);
  clock.time = 30;
  timers.advance();
  assert.deepEqual(fired, [0, 3]);
  timers.advance();
  assert.deepEqual(fired, [0, 3, 4]);
  clock.time = 31;
  timers.advance();
  assert.deepEqual(fired, [0, 3, 4, 2]);
  assert.equal(timers.size, 0);
});

test('an owner that throws loses no other timer, and the alarm is set', () => {
  const { timers, clock, alarm, fired, make } = setUp();
  const failing = () =>
    new Timer({
      onTimer() {
        throw new Error('broken owner');
      },
    });
  timers.start(failing(), 1);
  timers.start(make(1), 1);
  timers.start(make(2), 50);
  clock.time = 2;
  assert.throws(() => timers.advance(), { message: 'broken owner' });
  assert.deepEqual(fired, [1]);
  assert.equal(alarm.at, 50);
  timers.start(failing(), 1);
  timers.start(failing(), 1);
  clock.time = 60;
  assert.throws(() => timers.advance(), AggregateError);
  assert.deepEqual(fired, [1, 2]);
});

test('a clock that goes back delays, and neither loses nor repeats', () => {
  const { timers, fired, make, advanceTo } = setUp();
  timers.start(make(1), 100);
  advanceTo(60);
  advanceTo(20);
  timers.start(make(2), 0);
  timers.start(make(3), 10);
  advanceTo(99);
  assert.deepEqual(fired, [2, 3]);
  advanceTo(100);
  assert.deepEqual(fired, [2, 3, 1]);
});

test('the alarm alone fires every timer at its deadline, with few calls', () => {
  const { timers, clock, alarm } = setUp(123.456);
  const late: number[] = [];
  const owner = { onTimer: (timer: Timer) => void late.push(clock.time - timer.deadline) };
  const delays = [0, 1, 33, 5000, 5000, 86_400_000, MAX_DELAY];
  for (const delay of delays) timers.start(new Timer(owner), delay);
  let calls = 0;
  while (alarm.at !== undefined) {
    clock.time = Math.max(clock.time, alarm.at);
    timers.advance();
    assert.ok(++calls < 50);
  }
  assert.equal(late.length, delays.length);
  assert.ok(late[0]! < 1);
  assert.deepEqual(late.slice(1), [0, 0, 0, 0, 0, 0]);
  assert.equal(calls, 6);
});

interface ModelTimer {
  deadline: number;
  order: number;
}

type Reaction = { what: 'start' | 'stop'; on: number; delay: number };
type Step = { what: 'start' | 'stop' | 'advance'; on: number; amount: number; reactions: Reaction[] };

/** The rules and nothing else: look at every timer, take the earliest. */
class Model {
  readonly active = new Map<number, ModelTimer>();
  #order = 0;
  start(kind: number, now: number, delay: number): void {
    const deadline = delay === 0 ? Math.floor(now) : Math.ceil(now + delay);
    this.active.set(kind, { deadline, order: this.#order++ });
  }
  advance(now: number, react: (kind: number) => void): number[] {
    const fired: number[] = [];
    const before = this.#order;
    for (;;) {
      const due = [...this.active].filter(([, timer]) => timer.deadline <= now && timer.order < before);
      due.sort(([, a], [, b]) => a.deadline - b.deadline || a.order - b.order);
      const first = due[0];
      if (first === undefined) return fired;
      this.active.delete(first[0]);
      fired.push(first[0]);
      react(first[0]);
    }
  }
  earliest(): number | undefined {
    let least: number | undefined;
    for (const { deadline } of this.active.values()) if (least === undefined || deadline < least) least = deadline;
    return least;
  }
}

const KINDS = 12;
const on = fc.nat(KINDS - 1);
const delay = fc.oneof(
  fc.constantFrom(0, 1, 31, 32, 33, 1023, 1024, 32768, MAX_DELAY),
  fc.nat(70),
  fc.double({ min: 0, max: 5000, noNaN: true }),
  fc.nat(MAX_DELAY),
);
const reaction: fc.Arbitrary<Reaction> = fc.record({ what: fc.constantFrom('start', 'stop'), on, delay });
const step: fc.Arbitrary<Step> = fc.record({
  what: fc.constantFrom('start', 'start', 'stop', 'advance'),
  on,
  amount: delay,
  reactions: fc.array(reaction, { maxLength: 3 }),
});
const origin = fc.constantFrom(0, 0.3, 1e6 + 0.7, -2000.5);
const gone = fc.constantFrom(0, 2 ** 30 - 50, 2 ** 31 - 7.5, 2 ** 35 - 1000, 2 ** 50);

test('does what a naive model does: starts, stops, jumps, re-entrancy', () => {
  fc.assert(
    fc.property(origin, gone, fc.array(step, { minLength: 1, maxLength: 60 }), (begin, jump, steps) => {
      const clock = new ManualClock(begin);
      const alarm = new ManualAlarm();
      const timers = new Timers(clock, alarm);
      clock.time += jump;
      const model = new Model();
      let reactions: Reaction[] = [];
      let turn = 0;
      let fired: number[] = [];
      const owner = {
        onTimer(timer: Timer) {
          assert.ok(timer.deadline <= clock.time, 'never early');
          assert.equal(timer.active, false);
          fired.push(timer.kind);
          const next = reactions[turn++];
          if (next?.what === 'start') timers.start(all[next.on]!, next.delay);
          else if (next !== undefined) timers.stop(all[next.on]!);
        },
      };
      const all = Array.from({ length: KINDS }, (_, kind) => new Timer(owner, kind));
      for (const one of steps) {
        if (one.what === 'start') {
          timers.start(all[one.on]!, one.amount);
          model.start(one.on, clock.time, one.amount);
        } else if (one.what === 'stop') {
          timers.stop(all[one.on]!);
          model.active.delete(one.on);
        } else {
          clock.time += one.amount;
          reactions = one.reactions;
          let modelTurn = 0;
          const expected = model.advance(clock.time, () => {
            const next = reactions[modelTurn++];
            if (next?.what === 'start') model.start(next.on, clock.time, next.delay);
            else if (next !== undefined) model.active.delete(next.on);
          });
          fired = [];
          turn = 0;
          timers.advance();
          assert.deepEqual(fired, expected);
        }
        assert.equal(timers.size, model.active.size);
        for (const timer of all) assert.equal(timer.active, model.active.has(timer.kind));
        const earliest = model.earliest();
        const next = timers.nextDeadline();
        assert.equal(next === undefined, earliest === undefined);
        assert.equal(alarm.at === undefined, earliest === undefined);
        if (next === undefined || earliest === undefined) continue;
        assert.ok(next <= earliest && alarm.at! <= earliest, 'the alarm is never late');
      }
    }),
    { numRuns: 400 },
  );
});

test('a million timers of one period start, fire, restart and stop', () => {
  const { timers, clock, alarm } = setUp(1000.5);
  const count = 1_000_000;
  let fired = 0;
  const owner = {
    onTimer(timer: Timer) {
      fired++;
      timers.start(timer, 5000);
    },
  };
  const all = Array.from({ length: count }, () => new Timer(owner));
  for (const [index, timer] of all.entries()) {
    if (index % 10_000 === 0) clock.time += 7;
    timers.start(timer, 5000);
  }
  assert.equal(timers.size, count);
  let steps = 0;
  while (fired < 2 * count) {
    clock.time = alarm.at!;
    timers.advance();
    assert.ok(++steps <= 200, 'one step for each distinct deadline');
  }
  assert.equal(fired, 2 * count);
  for (const timer of all) timers.stop(timer);
  assert.equal(timers.size, 0);
  assert.equal(alarm.at, undefined);
  clock.time += 1e9;
  timers.advance();
  assert.equal(fired, 2 * count);
});
