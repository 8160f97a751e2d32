import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Confirms, QueueWorld, type TestConsumer } from '../../support/queue-world.js';

/** What happens in one life of the dispatcher, by number. */
type Step =
  | { kind: 'publish'; count: number }
  | { kind: 'join'; group: number; window: number }
  | { kind: 'leave'; which: number }
  | { kind: 'ack' | 'nack'; which: number; first: number; count: number }
  | { kind: 'again'; back: number }
  | { kind: 'wait'; ms: number }
  | { kind: 'settle' }
  | { kind: 'full'; on: boolean }
  | { kind: 'crash' };

const small = fc.integer({ min: 0, max: 3 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('publish' as const), count: fc.integer({ min: 1, max: 6 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('join' as const),
      group: fc.integer({ min: 0, max: 1 }),
      window: fc.integer({ min: 1, max: 5 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('leave' as const), which: small }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constantFrom('ack' as const, 'ack' as const, 'nack' as const),
      which: small,
      first: small,
      count: fc.integer({ min: 1, max: 4 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('again' as const), back: fc.integer({ min: 1, max: 6 }) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 4 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('settle' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('full' as const), on: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('crash' as const) }) },
);

/** Runs steps against a queue on a simulated disk and checks what must hold after each. */
class Check {
  readonly confirms = new Confirms();
  private next = 1;
  private consumers: { consumer: TestConsumer; group: string; window: number }[] = [];
  /** Per group: sequences whose acknowledgement was confirmed, and the highest count seen of each. */
  private readonly acked = new Map<string, Set<number>>();
  private readonly counts = new Map<string, Map<number, number>>();
  private readonly positions = new Map<string, number>();
  /** What each sequence is, once somebody got it. */
  private readonly bodies = new Map<number, string>();

  constructor(readonly world: QueueWorld) {}

  async run(steps: readonly Step[]): Promise<void> {
    for (const each of steps) {
      await this.step(each);
      this.check();
    }
    await this.finish();
  }

  private async step(each: Step): Promise<void> {
    const { world } = this;
    if (each.kind === 'publish') {
      this.publish(this.next, each.count);
      this.next += each.count;
    } else if (each.kind === 'again') {
      const first = Math.max(1, this.next - each.back);
      if (first < this.next) this.publish(first, this.next - first);
    } else if (each.kind === 'join') this.join(`g${each.group}`, each.window);
    else if (each.kind === 'leave') this.leave(each.which);
    else if (each.kind === 'ack' || each.kind === 'nack') this.settle(each.kind, each.which, each.first, each.count);
    else if (each.kind === 'wait') await world.world.advance(each.ms);
    else if (each.kind === 'settle') await world.settle();
    else if (each.kind === 'full') world.disk.behaviour.capacity = each.on ? 0 : Number.POSITIVE_INFINITY;
    else {
      this.consumers = [];
      await world.crash();
    }
  }

  private publish(first: number, count: number): void {
    const bodies = Array.from({ length: count }, (_, index) => `n${first + index}`);
    this.world.publish(bodies, first, this.confirms);
  }

  private join(group: string, window: number): void {
    const consumer = this.world.consume(group, window);
    this.consumers.push({ consumer, group, window });
    consumer.onGot = (sequence, body, delivery) => this.got(group, sequence, body, delivery);
    for (const { sequence, body, count } of consumer.got) this.got(group, sequence, body, count);
  }

  private got(group: string, sequence: number, body: string, delivery: number): void {
    assert.ok(!this.acked.get(group)?.has(sequence), `${group}: ${sequence} was acknowledged and comes again`);
    assert.equal(this.bodies.get(sequence) ?? body, body, `${sequence} is another message than before`);
    this.bodies.set(sequence, body);
    const counts = this.counts.get(group) ?? new Map<number, number>();
    this.counts.set(group, counts);
    assert.ok(delivery > (counts.get(sequence) ?? 0), `${group}: the count of ${sequence} is ${delivery} again`);
    counts.set(sequence, delivery);
  }

  private leave(which: number): void {
    const [left] = this.consumers.splice(which, 1);
    left?.consumer.member.leave();
  }

  private settle(kind: 'ack' | 'nack', which: number, first: number, count: number): void {
    const entry = this.consumers[which % Math.max(1, this.consumers.length)];
    if (entry === undefined) return;
    const { consumer, group } = entry;
    const held = consumer.member.held.all().flatMap((run) => [run.first, run.last]);
    const from = (held[first % Math.max(1, held.length)] ?? 1) as number;
    if (kind === 'nack') {
      consumer.nack(from, from + count - 1);
      return;
    }
    const mine = new Set<number>();
    for (const run of consumer.member.held.all()) {
      for (let sequence = run.first; sequence <= run.last; sequence++) {
        if (sequence >= from && sequence < from + count) mine.add(sequence);
      }
    }
    consumer.member.ack([{ first: from, last: from + count - 1 }], () => {
      const acked = this.acked.get(group) ?? new Set();
      this.acked.set(group, acked);
      for (const sequence of mine) acked.add(sequence);
    });
  }

  private check(): void {
    for (const { consumer, window } of this.consumers)
      assert.ok(consumer.member.held.size <= window, 'over the window');
    const sequences = [...this.confirms.sequences.values()];
    assert.equal(new Set(sequences).size, sequences.length, 'two numbers have one sequence');
    for (const [name, group] of this.world.queue.groups) {
      let least = this.positions.get(name) ?? 0;
      // everything that was confirmed as acknowledged stays so
      while (this.acked.get(name)?.has(least + 1)) least++;
      assert.ok(group.position >= least, `${name}: position ${group.position} is below ${least}`);
      this.positions.set(name, least);
    }
  }

  /** The faults stop, everything is sent again and acknowledged: everything must arrive, once. */
  private async finish(): Promise<void> {
    const { world, confirms } = this;
    world.disk.behaviour.capacity = Number.POSITIVE_INFINITY;
    this.consumers = [];
    await world.crash();
    await world.advance(1000);
    if (this.next > 1) this.publish(1, this.next - 1);
    await world.settle();
    for (const group of ['g0', 'g1']) this.join(group, 1000);
    await world.settle();
    for (let number = 1; number < this.next; number++) {
      assert.ok(confirms.sequences.has(number), `number ${number} was never confirmed`);
    }
    assert.equal(world.queue.last, this.next - 1, 'stored more or less than once');
    for (const group of ['g0', 'g1']) {
      for (const [number, sequence] of confirms.sequences) {
        if (sequence <= world.queue.floor) continue;
        const got = this.counts.get(group)?.has(sequence);
        const done = world.queue.groups.get(group)!.isDone(sequence);
        assert.ok(got || done, `${group} never got ${sequence} (number ${number})`);
        if (got) assert.equal(this.bodies.get(sequence), `n${number}`);
      }
    }
    for (const { consumer } of this.consumers) await Promise.all([consumer.ack(1, 10_000), world.settle()]);
    await world.settle();
    assert.equal(world.queue.depth, 0, 'the depth does not come to 0 (F98)');
  }
}

test('whatever happens: confirmed is stored once, acknowledged is done with, everything else comes back', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      await new Check(await QueueWorld.start()).run(steps);
    }),
    { numRuns: 400 },
  );
});
