import { setTimeout as pause } from 'node:timers/promises';
import { decodeFromCompressedBase64 } from 'hdr-histogram-js';
import { cpuShare } from './machine.mjs';
import { Worker } from './processes.mjs';

/** Most processes that the connections of one side are spread over. */
const SENDER_PROCESSES = 4;
const RECEIVER_PROCESSES = 8;
/** Of `roles/receiver.mjs`. */
const UNIT_US = 0.1;

/**
 * One system under measurement: its server, senders and receivers, alive for a whole scenario so that rounds of several
 * systems can take turns. Sender i has channel i; receivers are dealt out over the channels.
 */
export class Field {
  #server;
  #senders = [];
  #receivers = [];
  #shape;

  constructor(system, shape) {
    this.system = system;
    this.#shape = shape;
  }

  /** @param shape senders, receivers, size (bytes of a body), stamps (whether bodies carry a time) */
  static async open(system, shape) {
    const field = new Field(system, shape);
    try {
      await field.#open();
      return field;
    } catch (error) {
      await field.close();
      throw error;
    }
  }

  async #open() {
    const { senders, receivers, stamps = false } = this.#shape;
    this.#server = await this.system.start();
    const { url } = this.#server;
    const args = { system: this.system.name, url, stamps };
    this.#senders = await openAll('sender', deal(senders, SENDER_PROCESSES, senders), args);
    this.#receivers = await openAll('receiver', deal(receivers, RECEIVER_PROCESSES, senders), args);
    await Promise.all(this.#senders.map((worker) => worker.call('ready')));
  }

  /** Deliveries a second of all receivers together, the server's share of a core, and the receivers' shares. */
  async throughput({ warmMs, ms }) {
    const { size } = this.#shape;
    for (const worker of this.#senders) await worker.call('flood', { size });
    await pause(warmMs);
    const { value: windows, cpu } = await cpuShare(this.#server.pid, () =>
      Promise.all(this.#receivers.map((worker) => worker.call('measure', { ms }))),
    );
    await Promise.all(this.#senders.map((worker) => worker.call('stop')));
    await this.quiet();
    return {
      rate: sum(windows.map(({ rate }) => rate)),
      serverCpu: cpu,
      receiverCpu: sum(windows.map(({ cpu: share }) => share)),
    };
  }

  /** Resolves when nothing is delivered any more: what one round left must not burden the next. */
  async quiet() {
    for (let before = -1, round = 0; round < 200; round++) {
      const counts = await Promise.all(this.#receivers.map((worker) => worker.call('count')));
      const total = sum(counts);
      if (total === before) return;
      before = total;
      await pause(50);
    }
  }

  /** Latencies in microseconds at `rate` messages a second. */
  async latency({ rate, warmMs, ms }) {
    const { size } = this.#shape;
    await Promise.all(this.#receivers.map((worker) => worker.call('resetLatency')));
    const { value: plan, cpu } = await cpuShare(this.#server.pid, () =>
      this.#senders[0].call('paced', { rate, size, warmMs, ms }),
    );
    const expected = plan.sent;
    const ends = await Promise.all(
      this.#receivers.map((worker, index) => {
        const connections = deal(this.#shape.receivers, RECEIVER_PROCESSES, 1)[index].length;
        return worker.call('latency', { expected: expected * connections });
      }),
    );
    const [histogram, ...others] = ends.map((end) => decodeFromCompressedBase64(end.histogram, 64, false));
    for (const other of others) histogram.add(other);
    const at = (percentile) => Math.round(histogram.getValueAtPercentile(percentile) * UNIT_US * 10) / 10;
    return {
      p50: at(50),
      p99: at(99),
      p999: at(99.9),
      max: at(100),
      delivered: sum(ends.map(({ received }) => received)) / (expected * this.#shape.receivers),
      senderLateP50: plan.lateP50,
      senderLateP99: plan.lateP99,
      serverCpu: cpu,
    };
  }

  async close() {
    await Promise.all([...this.#senders, ...this.#receivers].map((worker) => worker.stop()));
    await this.#server?.stop();
  }
}

async function openAll(role, shares, args) {
  const workers = shares.map(() => new Worker(role));
  await Promise.all(workers.map((worker, index) => worker.call('open', { ...args, channels: shares[index] })));
  return workers;
}

/** `connections` over at most `processes`; connection i has channel 1 + i modulo `channels`. */
function deal(connections, processes, channels) {
  const shares = Array.from({ length: Math.min(connections, processes) }, () => []);
  for (let index = 0; index < connections; index++) {
    shares[index % shares.length].push(1 + (index % channels));
  }
  return shares;
}

export function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}
