import { setTimeout as pause } from 'node:timers/promises';
import { now } from '../lib/clock.mjs';
import { loadQueueSystem } from '../lib/queue-system.mjs';

let client;
let flight;

export async function open({ system, url }) {
  client = await (await loadQueueSystem(system)).connect(url);
}

export const create = ({ queue, groups }) => client.create(queue, groups);
export const remove = async ({ queue, groups }) => void (await client.remove(queue, groups));

/** Keeps `inFlight` messages of `size` bytes unconfirmed until `stop`, or until `count` are published. */
class Flight {
  stored = 0;
  published = 0;
  #left;
  #ended;
  #end;

  constructor(publish, body, inFlight, count) {
    this.#left = count;
    this.#ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    const stored = () => {
      this.stored++;
      if (this.#left > 0) next();
      else if (this.stored === this.published) this.#end();
    };
    const next = () => {
      this.#left--;
      this.published++;
      publish(body, stored);
    };
    for (let free = Math.min(inFlight, count); free > 0; free--) next();
  }

  /** Resolves when everything that was published is stored. */
  ended() {
    return this.#ended;
  }

  stop() {
    this.#left = 0;
    return this.#ended;
  }
}

/** Messages stored a second in a window of `ms` behind `warmMs`, and processor time of this process for one, µs. */
export async function measure({ queue, size, inFlight, warmMs, ms }) {
  await start({ queue, size, inFlight });
  await pause(warmMs);
  const before = flight.stored;
  const cpu = process.cpuUsage();
  const begin = now();
  await pause(ms);
  const seconds = (now() - begin) / 1e9;
  const { user, system } = process.cpuUsage(cpu);
  const count = flight.stored - before;
  await flight.stop();
  return { rate: count / seconds, count, clientCpuUs: (user + system) / count };
}

/** Begins to publish and returns when that was. */
export async function start({ queue, size, inFlight, count = Number.POSITIVE_INFINITY }) {
  const publish = await client.publisher(queue);
  const begin = now();
  flight = new Flight(publish, Buffer.alloc(size, 1), inFlight, count);
  return begin;
}

/** Resolves with the number of messages that are stored, all that were published. */
export async function stop() {
  await flight.stop();
  return flight.stored;
}

export async function ended() {
  await flight.ended();
  return now();
}
