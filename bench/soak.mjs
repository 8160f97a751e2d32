import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Cast } from './lib/cast.mjs';
import { residentBytes } from './lib/machine.mjs';
import { runCleanly } from './lib/processes.mjs';
import { amount } from './lib/report.mjs';
import { median } from './lib/rounds.mjs';

const CHANNEL = 1;
const SIZE = 100;
const RECEIVERS = 2;
/** Subscriptions that come and go, beside those that stay. */
const VISITORS = 50;
const MOST_GROWTH = 0.05;
const SAMPLE_MS = 1000;
const WARM_MS = 30_000;

const usage = `npm run soak -- --minutes N
  Full speed with subscribers coming and going, after half a minute of warm-up. Prints the resident memory of every
  process per minute (median of its seconds); exit code 1 when that of the last minute differs from the first by more
  than 5 %.`;

function readMinutes() {
  const { values } = parseArgs({ options: { minutes: { type: 'string' }, help: { type: 'boolean' } } });
  const minutes = Number(values.minutes ?? 10);
  if (values.help || !Number.isInteger(minutes) || minutes < 2) return undefined;
  return minutes;
}

async function main() {
  const minutes = readMinutes();
  if (minutes === undefined) {
    console.error(`${usage}\n  N is an integer from 2, default 10`);
    return 2;
  }
  return Cast.with('trunkline', async (cast) => {
    const args = { system: 'trunkline', url: cast.url, channels: [CHANNEL], stamps: false };
    const sender = cast.worker('sender');
    const receivers = Array.from({ length: RECEIVERS }, () => cast.worker('receiver'));
    const visitors = cast.worker('visitor');
    await Promise.all([sender, ...receivers].map((worker) => worker.call('open', args)));
    await sender.call('ready');
    await sender.call('flood', { size: SIZE });
    await visitors.call('comeAndGo', { url: cast.url, code: CHANNEL, count: VISITORS });
    const pids = {
      daemon: cast.server.pid,
      provider: sender.pid,
      ...Object.fromEntries(receivers.map((worker, index) => [`subscriber ${index + 1}`, worker.pid])),
      visitors: visitors.pid,
    };
    await pause(WARM_MS);
    const perMinute = [];
    for (let minute = 1; minute <= minutes; minute++) {
      const before = await visitors.call('visits');
      const windows = receivers.map((worker) => worker.call('measure', { ms: 59_000 }));
      perMinute.push(await sampleMinute(pids));
      const rate = (await Promise.all(windows)).reduce((total, window) => total + window.rate, 0);
      const visits = (await visitors.call('visits')) - before;
      const sizes = Object.entries(perMinute.at(-1)).map(([name, bytes]) => `${name} ${mebibytes(bytes)}`);
      console.log(`minute ${minute}: ${amount(rate, '/s')} deliveries/s, ${visits} visits, MiB: ${sizes.join(' · ')}`);
    }
    return verdict(perMinute[0], perMinute.at(-1));
  });
}

async function sampleMinute(pids) {
  const samples = Object.fromEntries(Object.keys(pids).map((name) => [name, []]));
  for (let left = 60_000 / SAMPLE_MS; left > 0; left--) {
    for (const [name, pid] of Object.entries(pids)) samples[name].push(residentBytes(pid));
    await pause(SAMPLE_MS);
  }
  return Object.fromEntries(Object.entries(samples).map(([name, bytes]) => [name, median(bytes)]));
}

function verdict(first, last) {
  let exit = 0;
  for (const [name, bytes] of Object.entries(first)) {
    const change = last[name] / bytes - 1;
    const ok = Math.abs(change) <= MOST_GROWTH;
    if (!ok) exit = 1;
    const percent = `${change >= 0 ? '+' : ''}${(100 * change).toFixed(1)} %`;
    console.log(`${name}: ${mebibytes(bytes)} → ${mebibytes(last[name])} MiB, ${percent} ${ok ? 'ok' : 'NOT OK'}`);
  }
  return exit;
}

function mebibytes(bytes) {
  return (bytes / 2 ** 20).toFixed(0);
}

await runCleanly(main);
