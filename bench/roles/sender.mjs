import { setTimeout as pause } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { now } from '../lib/clock.mjs';
import { loadSystem } from '../lib/system.mjs';

const TICK_NS = 1_000_000;
/** A sender may fall this far behind its plan before it gives up sending the rest, ms. */
const BEHIND_MS = 5000;

const senders = [];
let stopping = false;
let floods = [];

/** Opens one connection for each channel. */
export async function open({ system, url, channels }) {
  const { connect } = await loadSystem(system);
  for (const channel of channels) {
    const client = await connect(url);
    senders.push(await client.open(channel));
  }
}

export async function ready() {
  for (const sender of senders) await sender.ready();
}

/** Sends as fast as it goes until `stop`. */
export function flood({ size }) {
  stopping = false;
  const body = Buffer.alloc(size, 1);
  floods = senders.map((sender) => sender.flood(body, () => stopping));
  for (const each of floods) {
    each.catch((error) => {
      console.error(error);
      process.exit(1);
    });
  }
}

export async function stop() {
  stopping = true;
  // one that waits for a receiver that never comes back must not hold up the others
  await Promise.race([Promise.all(floods), pause(5000)]);
}

/**
 * Open loop: `rate` messages a second in ticks of 1 ms, whatever becomes of them, stamped with the time they were meant
 * to be sent at; 0 during the warm-up. What the system does not take yet waits here, with its stamp.
 * Returns how many were stamped and how late the ticks were.
 */
export async function paced({ rate, size, warmMs, ms }) {
  const [sender] = senders;
  const plan = new Plan(sender, rate, size);
  const begin = now() + 20 * TICK_NS;
  const first = begin + warmMs * TICK_NS;
  const end = first + ms * TICK_NS;
  await plan.run(begin, first, end);
  return { sent: plan.sent, lateP50: plan.lateness(0.5), lateP99: plan.lateness(0.99) };
}

class Plan {
  sent = 0;
  #sender;
  #size;
  #perTick;
  #due = 0;
  #backlog = [];
  #draining = false;
  #late = [];

  constructor(sender, rate, size) {
    this.#sender = sender;
    this.#size = size;
    this.#perTick = rate / 1000;
  }

  async run(begin, first, end) {
    let next = begin;
    const ticker = new Worker(new URL('../lib/ticker.mjs', import.meta.url), {
      workerData: { begin, tickNs: TICK_NS },
    });
    await new Promise((resolve, reject) => {
      ticker.once('error', reject);
      ticker.on('message', () => {
        const time = now();
        for (; next <= time && next < end; next += TICK_NS) {
          if (next >= first) this.#late.push(time - next);
          this.#tick(next, next >= first);
        }
        this.#sender.flush();
        if (next >= end) resolve();
      });
    });
    await ticker.terminate();
    for (let waited = 0; this.#backlog.length > 0 && waited < BEHIND_MS; waited += 10) await pause(10);
  }

  #tick(time, counts) {
    this.#due += this.#perTick;
    for (; this.#due >= 1; this.#due--) {
      const body = Buffer.allocUnsafe(this.#size);
      body.writeDoubleLE(counts ? time : 0, 0);
      if (counts) this.sent++;
      if (this.#draining || !this.#sender.send(body)) this.#wait(body);
    }
  }

  #wait(body) {
    this.#backlog.push(body);
    if (!this.#draining) void this.#drain();
  }

  async #drain() {
    this.#draining = true;
    let from = 0;
    while (from < this.#backlog.length) {
      await this.#sender.drained();
      while (from < this.#backlog.length && this.#sender.send(this.#backlog[from])) from++;
      this.#sender.flush();
    }
    this.#backlog = [];
    this.#draining = false;
  }

  /** Microseconds between the planned and the real time of a tick. */
  lateness(share) {
    this.#late.sort((left, right) => left - right);
    return Math.round((this.#late[Math.floor(this.#late.length * share)] ?? 0) / 1000);
  }
}
