import {
  type Confirm,
  type Member,
  type MessageFilter,
  type PublishRefusal,
  type Queue,
  type QueueOptions,
  Queues,
  queueDefaults,
} from '@trunkline/dispatcher';
import type { Store } from '@trunkline/dispatcher/stores';
import { encodeMessage, Flusher, type Meta, OFFSET, readU32, readU53, silentLog, Timer, Type } from '@trunkline/proto';
import { MemoryWorld } from './memory-link.js';
import { SimulatedDisk } from './simulated-store.js';

export const CODE = 4001;

/** A message as a consumer of the engine got it. */
export interface Got {
  readonly sequence: number;
  readonly body: string;
  readonly count: number;
  readonly redelivered: boolean;
}

/** A consumer of the engine: notes what it gets. */
export class TestConsumer {
  readonly got: Got[] = [];
  readonly lost: { count: number; first: number; last: number; reason: string }[] = [];
  endedBy: string | undefined;
  ready = true;
  maxMessage = 2 ** 30;
  member!: Member;

  deliver(bytes: Uint8Array, start: number, end: number, _count: number, delivery: number): void {
    for (let at = start; at < end; at += readU32(bytes, at)) {
      const length = readU32(bytes, at);
      const metaLength = bytes[at + OFFSET.meta]! | (bytes[at + OFFSET.meta + 1]! << 8);
      const body = new TextDecoder().decode(bytes.subarray(at + 32 + metaLength, at + length));
      const sequence = readU53(bytes, at + OFFSET.sequence);
      this.got.push({ sequence, body, count: delivery, redelivered: delivery > 1 });
      this.onGot(sequence, body, delivery);
    }
  }

  onGot: (sequence: number, body: string, delivery: number) => void = () => {};

  ended(reason: string): void {
    this.endedBy = reason;
  }

  get sequences(): number[] {
    return this.got.map(({ sequence }) => sequence);
  }

  take(): Got[] {
    return this.got.splice(0);
  }

  /** Acknowledges; resolves with how many of them it did not hold, once that is stored. */
  ack(first: number, last = first): Promise<number> {
    return new Promise((resolve) => {
      this.member.ack([{ first, last }], (failed) => resolve(sum(failed)));
    });
  }

  nack(first: number, last = first, delay = 0): number {
    return sum(this.member.nack([{ first, last }], delay, 'no'));
  }
}

function sum(ranges: readonly { first: number; last: number }[]): number {
  return ranges.reduce((total, { first, last }) => total + last - first + 1, 0);
}

/** What became of publishes: sequences by number, or the refusal. */
export class Confirms implements Confirm {
  readonly sequences = new Map<number, number>();
  readonly refusals = new Map<number, PublishRefusal>();

  stored(number: number, count: number, sequence: number): void {
    for (let index = 0; index < count; index++) this.sequences.set(number + index, sequence + index);
  }

  refused(number: number, count: number, reason: PublishRefusal): void {
    for (let index = 0; index < count; index++) this.refusals.set(number + index, reason);
  }
}

/** The queue engine without a dispatcher, on a virtual clock and a disk that survives it. */
export class QueueWorld {
  readonly world = new MemoryWorld();
  readonly disk = new SimulatedDisk(this.world.random, (ms, run) => {
    const life = this.life;
    this.world.timers.start(new Timer({ onTimer: () => (life === this.life ? run() : undefined) }), Math.ceil(ms));
  });
  date = 1_700_000_000_000;
  queues!: Queues;
  declarations: QueueOptions[] = [];
  /** Hears what is logged as an error or for information. */
  say: (text: string) => void = () => {};
  private life = 0;
  private number = 1;

  static async start(options: Partial<QueueOptions> = {}, more: Partial<QueueOptions> = {}): Promise<QueueWorld> {
    const world = new QueueWorld();
    world.declarations = [
      { ...queueDefaults, storage: 'disk', ...options },
      { ...queueDefaults, storage: 'disk', ...more },
    ];
    await world.open();
    return world;
  }

  async open(store: Store = this.disk.attach()): Promise<void> {
    const { clock, timers } = this.world;
    const { life } = this;
    this.queues = new Queues({
      clock,
      timers,
      flusher: new Flusher((run) => this.world.later(() => (life === this.life ? run() : undefined))),
      log: { ...silentLog, error: (_fields, text) => this.say(text), info: (_fields, text) => this.say(text) },
      store,
      date: () => this.date,
      compile: testFilter,
    });
    await this.queues.open();
    this.queues.configure(
      this.declarations.map((options, index) => ({ code: CODE + index, name: `queue ${index}`, options })),
    );
    await this.settle();
  }

  /** The process dies without a word and another one begins. */
  async crash(): Promise<void> {
    this.life++;
    this.disk.crash();
    for (const { queue } of this.queues.all()) queue.stopTimers();
    this.queues.committer.close();
    await this.open();
  }

  get queue(): Queue {
    return this.queues.find(CODE)!;
  }

  get second(): Queue {
    return this.queues.find(CODE + 1)!;
  }

  publish(bodies: string[], number: number, confirms: Confirms, id = 'publisher', meta: Partial<Meta> = {}): void {
    const messages = bodies.map((body) => encodeMessage({ type: Type.PUBLISH, code: CODE }, body, meta));
    const buffer = new Uint8Array(messages.reduce((total, { length }) => total + length, 0));
    let at = 0;
    for (const message of messages) {
      buffer.set(message, at);
      at += message.length;
    }
    this.queue.inlet.publish(this.queue.inlet.publisher(id), buffer, 0, buffer.length, bodies.length, number, confirms);
  }

  /** Publishes and waits until it is stored. */
  async store(...bodies: string[]): Promise<Confirms> {
    const confirms = new Confirms();
    this.publish(bodies, this.number, confirms, `one-${this.life}`);
    this.number += bodies.length;
    await this.settle();
    return confirms;
  }

  consume(
    group: string,
    window = 10,
    more: { filter?: string; start?: 'earliest' | 'latest' | { after: number } } = {},
  ) {
    const consumer = new TestConsumer();
    const port = {
      get ready() {
        return consumer.ready;
      },
      get maxMessage() {
        return consumer.maxMessage;
      },
      deliver: consumer.deliver.bind(consumer),
      lost: (count: number, first: number, last: number, reason: string) =>
        void consumer.lost.push({ count, first, last, reason }),
      ended: consumer.ended.bind(consumer),
    };
    consumer.member = this.queue.join(group, more.filter ?? '', more.start ?? 'earliest', port, window);
    consumer.member.start();
    return consumer;
  }

  /** Lets the clock run until nothing waits for the disk. */
  async settle(): Promise<void> {
    for (let round = 0; round < 6; round++) {
      await this.world.settle();
      await this.world.advance(3);
    }
  }

  async advance(ms: number): Promise<void> {
    await this.world.advance(ms);
    await this.settle();
  }
}

/** `X` matches bodies that contain X; `!` does not compile. */
function testFilter(text: string): MessageFilter {
  if (text === '!') throw new Error('no filter');
  const wanted = new TextEncoder().encode(text)[0]!;
  return { text, matches: (bytes, at) => bytes.subarray(at + 32, at + readU32(bytes, at)).includes(wanted) };
}
