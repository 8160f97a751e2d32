import { setTimeout as pause } from 'node:timers/promises';
import { cpuSeconds } from './machine.mjs';
import { Worker } from './processes.mjs';

let queues = 0;

/** One system with durable queues under measurement: its server and a publishing client, alive for a whole scenario. */
export class QueueField {
  #server;
  #publisher;
  #consumers = new Set();

  constructor(system) {
    this.system = system;
  }

  static async open(system) {
    const field = new QueueField(system);
    try {
      field.#server = await system.start();
      field.#publisher = await field.#worker('queue-publisher');
      return field;
    } catch (error) {
      await field.close();
      throw error;
    }
  }

  get url() {
    return this.#server.url;
  }

  get pid() {
    return this.#server.pid;
  }

  async #worker(role) {
    const worker = new Worker(role);
    if (role === 'queue-consumer') this.#consumers.add(worker);
    await worker.call('open', { system: this.system.name, url: this.#server.url });
    return worker;
  }

  /** A new queue for `action`, which gets its number. */
  async #queue(groups, action) {
    const queue = ++queues;
    await this.#publisher.call('create', { queue, groups });
    try {
      return await action(queue);
    } finally {
      await Promise.all([...this.#consumers].map((worker) => worker.stop()));
      this.#consumers.clear();
      await this.#publisher.call('remove', { queue, groups });
    }
  }

  async #cpu(action) {
    const before = cpuSeconds(this.#server.pid);
    const result = await action();
    return { ...result, serverCpu: cpuSeconds(this.#server.pid) - before };
  }

  /** Messages stored a second. */
  publish(shape) {
    return this.#queue([], (queue) => this.#cpu(() => this.#publisher.call('measure', { queue, ...shape })));
  }

  /**
   * Published for `ms`, and at the same time consumed and acknowledged by each group. The time ends when the slowest
   * group has everything.
   */
  groups({ groups, size, inFlight, ms }) {
    const names = Array.from({ length: groups }, (_, index) => `group${index}`);
    return this.#queue(names, async (queue) => {
      const consumers = await Promise.all(names.map(() => this.#worker('queue-consumer')));
      await Promise.all(consumers.map((worker, index) => worker.call('consume', { queue, group: names[index] })));
      return this.#cpu(async () => {
        const begin = await this.#publisher.call('start', { queue, size, inFlight });
        await pause(ms);
        const count = await this.#publisher.call('stop');
        const ends = await Promise.all(consumers.map((worker) => worker.call('until', { count })));
        const end = Math.max(...ends.map(({ at }) => at));
        return { rate: count / ((end - begin) / 1e9), count };
      });
    });
  }

  /** `count` messages that one consumer finds, read and acknowledged; messages a second. */
  drain({ count, size, inFlight }) {
    const group = 'group0';
    return this.#queue([group], async (queue) => {
      const begin = await this.#publisher.call('start', { queue, size, inFlight, count });
      const filled = await this.#publisher.call('ended');
      const consumer = await this.#worker('queue-consumer');
      return this.#cpu(async () => {
        const from = await consumer.call('consume', { queue, group });
        const { at } = await consumer.call('until', { count });
        return { rate: count / ((at - from) / 1e9), count, fillRate: count / ((filled - begin) / 1e9) };
      });
    });
  }

  /** Runs `action` while a queue is published into and read at full speed; with how fast that was. */
  async busy({ size, inFlight }, action) {
    const group = 'group0';
    return this.#queue([group], async (queue) => {
      const consumer = await this.#worker('queue-consumer');
      await consumer.call('consume', { queue, group });
      const begin = await this.#publisher.call('start', { queue, size, inFlight });
      await pause(500);
      const result = await action();
      const count = await this.#publisher.call('stop');
      const { at } = await consumer.call('until', { count });
      return { ...result, queueRate: count / ((at - begin) / 1e9) };
    });
  }

  async close() {
    await Promise.all([this.#publisher, ...this.#consumers].map((worker) => worker?.stop()));
    await this.#server?.stop();
  }
}
