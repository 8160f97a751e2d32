import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { MAX_DELAY, Timer, Timers } from '@trunkline/proto';
import { createNodeTimers, NodeAlarm, systemClock, systemRandom } from '@trunkline/proto/node';

/** Runs `script` as a module of its own; the process must end by itself. */
function run(script: string): string {
  const child = spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
    cwd: import.meta.dirname,
    encoding: 'utf8',
    timeout: 20_000,
  });
  assert.equal(child.status, 0, child.stderr);
  return child.stdout.trim();
}
const imports = `
  import { Timer } from '@trunkline/proto';
  import { createNodeTimers } from '@trunkline/proto/node';`;

test('timers fire by themselves, in order and never early', async () => {
  const timers = createNodeTimers();
  const started = systemClock.now();
  const fired: number[] = [];
  await new Promise<void>((resolve) => {
    const owner = {
      onTimer(timer: Timer) {
        assert.ok(systemClock.now() >= started + timer.kind);
        fired.push(timer.kind);
        if (timers.size === 0) resolve();
      },
    };
    for (const delay of [30, 0, 12, 1]) timers.start(new Timer(owner, delay), delay);
  });
  assert.deepEqual(fired, [0, 1, 12, 30]);
});

test('one timeout for any number of timers, none when none is active', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let time = 0;
  const clock = { now: () => time };
  const timers: Timers = new Timers(clock, new NodeAlarm(() => timers.advance(), { clock }));
  const set = t.mock.method(globalThis, 'setTimeout');
  const fired: number[] = [];
  const owner = { onTimer: (timer: Timer) => void fired.push(timer.kind) };
  const all = [50, 60, 70, 70].map((delay) => new Timer(owner, delay));
  for (const timer of all) timers.start(timer, timer.kind);
  assert.equal(set.mock.callCount(), 1);
  for (const timer of all) timers.start(timer, timer.kind); // what heartbeats do: no new timeout
  assert.equal(set.mock.callCount(), 1);
  time = 49.5; // Node's timeouts may come a little early
  t.mock.timers.tick(50);
  assert.deepEqual(fired, []);
  time = 50.5;
  t.mock.timers.tick(1);
  assert.deepEqual(fired, [50]);
  for (const timer of all) timers.stop(timer);
  time = 1000;
  const before = set.mock.callCount();
  t.mock.timers.tick(1000);
  assert.deepEqual(fired, [50]);
  assert.equal(set.mock.callCount(), before);
});

test('a deadline beyond what setTimeout takes is reached in pieces', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let time = 0;
  const clock = { now: () => time };
  const alarm = new NodeAlarm(
    () => {
      if (time < deadline) alarm.set(deadline);
      else reached++;
    },
    { clock },
  );
  const deadline = 2 * MAX_DELAY + 10;
  let reached = 0;
  alarm.set(deadline);
  for (const piece of [MAX_DELAY, MAX_DELAY, 9]) {
    time += piece;
    t.mock.timers.tick(piece);
    assert.equal(reached, 0);
  }
  time += 1;
  t.mock.timers.tick(1);
  assert.equal(reached, 1);
});

test('an earlier deadline replaces the timeout, clear ends it', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let calls = 0;
  const alarm = new NodeAlarm(() => calls++, { clock: { now: () => 0 } });
  alarm.set(1000);
  alarm.set(10);
  t.mock.timers.tick(10);
  assert.equal(calls, 1);
  alarm.set(20);
  alarm.clear();
  alarm.clear();
  t.mock.timers.tick(5000);
  assert.equal(calls, 1);
});

test('a process ends by itself once its timers are stopped (F28)', () => {
  const output = run(`${imports}
    const timers = createNodeTimers();
    const timer = new Timer({ onTimer() {} });
    timers.start(timer, 2 ** 31 - 1);
    timers.stop(timer);
    process.on('exit', () => console.log('left', process.getActiveResourcesInfo().includes('Timeout')));`);
  assert.equal(output, 'left false');
});

test('an active timer keeps the process alive, unless ref is false', () => {
  assert.equal(
    run(`${imports}
      createNodeTimers().start(new Timer({ onTimer() { console.log('fired'); } }), 20);`),
    'fired',
  );
  assert.equal(
    run(`${imports}
      createNodeTimers({ ref: false }).start(new Timer({ onTimer() { console.log('fired'); } }), 2 ** 31 - 1);`),
    '',
  );
});

test('a date that jumps moves no timer (F56)', (t) => {
  const timers = createNodeTimers();
  const timer = new Timer({ onTimer() {} });
  timers.start(timer, 60_000);
  const before = systemClock.now();
  for (const jump of [3_600_000, -3_600_000]) {
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + jump });
    assert.ok(Math.abs(systemClock.now() - before) < 60_000);
    timers.advance();
    assert.equal(timer.active, true);
    t.mock.timers.reset();
  }
  timers.stop(timer);
});

test('systemRandom draws from [0, 1) and gives bytes of its own', () => {
  for (let round = 0; round < 1000; round++) {
    const value = systemRandom.next();
    assert.ok(value >= 0 && value < 1);
  }
  const bytes = systemRandom.bytes(16);
  assert.equal(bytes.length, 16);
  assert.equal(bytes.buffer.byteLength, 16);
  assert.notDeepEqual(bytes, systemRandom.bytes(16));
  assert.equal(systemRandom.bytes(0).length, 0);
});
