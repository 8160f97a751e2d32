import { now } from '../lib/clock.mjs';
import { loadQueueSystem } from '../lib/queue-system.mjs';

let client;
let messages = 0;
let sum = 0;
let wanted = Number.POSITIVE_INFINITY;
let reached = () => {};

export async function open({ system, url }) {
  client = await (await loadQueueSystem(system)).connect(url);
}

/** Reads one queue as one group, from now on. Returns when that was. */
export async function consume({ queue, group }) {
  const begin = now();
  await client.consume(queue, group, onMessage);
  return begin;
}

function onMessage(body) {
  sum += body[body.length - 1];
  if (++messages === wanted) reached();
}

/** Resolves with the time when `count` messages had come. */
export function until({ count }) {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`${messages} of ${count} messages came`)), 300_000);
    reached = () => {
      clearTimeout(late);
      resolve({ at: now(), count: messages, sum });
    };
    wanted = count;
    if (messages >= count) reached();
  });
}
