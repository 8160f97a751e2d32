import { setTimeout as pause } from 'node:timers/promises';
import { build, encodeIntoCompressedBase64 } from 'hdr-histogram-js';
import { now } from '../lib/clock.mjs';
import { loadSystem } from '../lib/system.mjs';

/** Latencies are kept in units of this many nanoseconds. */
export const UNIT_NS = 100;
const LONGEST = (600 * 1e9) / UNIT_NS;
const POLL_MS = 20;
const QUIET_POLLS = 50;
const LONGEST_WAIT_NS = 15e9;

let messages = 0;
let stamped = 0;
let histogram;

/** Opens one connection for each channel. */
export async function open({ system, url, channels, stamps }) {
  const { connect } = await loadSystem(system);
  const onMessage = stamps ? readStamp : countMessage;
  for (const channel of channels) {
    const client = await connect(url);
    await client.receive(channel, onMessage);
  }
}

function countMessage() {
  messages++;
}

function readStamp(bytes, at) {
  messages++;
  const time = doubleAt(bytes, at);
  if (time === 0) return;
  stamped++;
  histogram.recordValue(Math.max(1, Math.round((now() - time) / UNIT_NS)));
}

const scratch = new Uint8Array(8);
const double = new Float64Array(scratch.buffer);

/** Little-endian as all machines that ZeroMQ is built for here. */
function doubleAt(bytes, at) {
  for (let index = 0; index < 8; index++) scratch[index] = bytes[at + index];
  return double[0];
}

/** Messages a second over a window of `ms`, by this process's own clock, and its share of one core. */
export async function measure({ ms }) {
  const before = messages;
  const cpu = process.cpuUsage();
  const begin = now();
  await pause(ms);
  const seconds = (now() - begin) / 1e9;
  const { user, system } = process.cpuUsage(cpu);
  return { rate: (messages - before) / seconds, cpu: (user + system) / 1e6 / seconds };
}

export function count() {
  return messages;
}

export function resetLatency() {
  stamped = 0;
  histogram = build({ bitBucketSize: 64, highestTrackableValue: LONGEST, numberOfSignificantValueDigits: 3 });
}

/** The histogram, once `expected` messages came, or none at all for a while. */
export async function latency({ expected }) {
  let before = -1;
  const limit = now() + LONGEST_WAIT_NS;
  for (let quiet = 0; stamped < expected && quiet < QUIET_POLLS && now() < limit; ) {
    quiet = messages === before ? quiet + 1 : 0;
    before = messages;
    await pause(POLL_MS);
  }
  return { received: stamped, histogram: encodeIntoCompressedBase64(histogram) };
}
