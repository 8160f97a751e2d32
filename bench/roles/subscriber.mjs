// A subscriber with many subscriptions.
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import { connect } from '@trunkline/subscriber';
import { now } from '../lib/clock.mjs';
import { loadSystem } from '../lib/system.mjs';

/** Subscriptions between two turns of the event loop. */
const AT_ONCE = 1000;

const clients = [];
let messages = 0;
/** Subscriptions that have had a message since the last `expectFlow`. */
let flowing = new Set();
let everFlowing = () => {};

export async function open({ url, connections = 1 }) {
  for (let left = connections; left > 0; left--) clients.push(await connect(url));
}

/** Idle subscriptions of any system. Returns how long they took, ms. */
export async function subscribeIdle({ system, url, first, count, wave }) {
  const client = await (await loadSystem(system)).connect(url);
  return timed(() => client.subscribe(first, count, wave));
}

/**
 * `count` subscriptions of each connection: with params of their own, or all with the same ones. Resolves when each of
 * them was accepted, and returns how long that took, ms.
 */
export function storm({ code, count, distinct }) {
  return timed(async () => {
    const accepted = [];
    for (const client of clients) {
      for (let id = 0; id < count; id++) {
        const params = { id: distinct ? id : 0 };
        accepted.push(client.subscribe(code, { params }, () => {}).accepted());
        if (accepted.length % AT_ONCE === 0) await turn();
      }
    }
    await Promise.all(accepted);
  });
}

/** Subscriptions of one code that flow when their own response comes; ids from `first`. */
export async function subscribeFlowing({ code, first, count }) {
  const [client] = clients;
  const accepted = [];
  for (let id = first; id < first + count; id++) {
    accepted.push(client.subscribe(code, { params: { id } }, () => flow(id, count)).accepted());
  }
  await Promise.all(accepted);
}

function flow(id, count) {
  messages++;
  flowing.add(id);
  if (flowing.size === count) everFlowing(now());
}

/** From now on: when has every subscription had a message? Answered by `flowed`. */
let allFlowed;
export function expectFlow() {
  flowing = new Set();
  allFlowed = new Promise((resolve) => {
    everFlowing = resolve;
  });
}

export function flowed() {
  return allFlowed;
}

/** One subscription for each filter, all of the same stream. */
export async function subscribeFilters({ code, filters }) {
  const [client] = clients;
  const onMessage = () => {
    messages++;
  };
  await Promise.all(filters.map((filter) => client.subscribe(code, { filter }, onMessage).accepted()));
}

/** Messages a second over a window of `ms`, by this process's own clock. */
export async function measure({ ms }) {
  const before = messages;
  const begin = now();
  await pause(ms);
  return (messages - before) / ((now() - begin) / 1e9);
}

/** What the dispatcher says of itself. */
export async function show({ view }) {
  const answer = await clients[0].request(0, { params: { show: view } });
  return answer.json();
}

/** Overflow `dropOldest` and a handler that takes its time: falls behind for good. */
export async function subscribeSlowly({ code, ms }) {
  const [client] = clients;
  await client.subscribe(code, { overflow: 'dropOldest' }, () => pause(ms)).accepted();
}

async function timed(action) {
  const begin = now();
  await action();
  return (now() - begin) / 1e6;
}
