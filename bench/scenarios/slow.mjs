import { setTimeout as pause } from 'node:timers/promises';
import { Cast } from '../lib/cast.mjs';
import { sum } from '../lib/field.mjs';
import { residentBytes } from '../lib/machine.mjs';
import { turned } from '../lib/rounds.mjs';

const CHANNEL = 1;
const SIZE = 100;
const FAST = 7;
const SLOW_MS = 100;
/** Defaults of the configuration, of one session: `session.outbox` and the credit of its peer. */
const OUTBOX = 4 * 1024 * 1024;
/**
 * What the slow one may cost the daemon, MiB: the outbox and the credit of one session, 4 each, and what the garbage
 * collector makes of that; it scatters by some ten.
 */
const MEMORY_MIB = 64;
const SAMPLE_MS = 50;

/** Who is compared: the slow one is all that `beside` has more than `alone`; `eight` has a fast one in its place. */
const casts = {
  eight: { fast: FAST + 1, slow: false },
  alone: { fast: FAST, slow: false },
  beside: { fast: FAST, slow: true },
};

/** A dispatcher with `fast` subscribers, and maybe one that never keeps up. */
async function open({ fast: count, slow }) {
  const cast = await Cast.open('trunkline');
  try {
    const args = { system: 'trunkline', url: cast.url, channels: [CHANNEL], stamps: false };
    const sender = cast.worker('sender');
    const fast = Array.from({ length: count }, () => cast.worker('receiver'));
    await Promise.all([sender, ...fast].map((worker) => worker.call('open', args)));
    if (slow) {
      const other = await cast.subscriber();
      await other.call('subscribeSlowly', { code: CHANNEL, ms: SLOW_MS });
    }
    await sender.call('ready');
    return { cast, sender, fast, observer: await cast.subscriber() };
  } catch (error) {
    await cast.close();
    throw error;
  }
}

async function measure({ cast, sender, fast, observer }, { warmMs, ms }) {
  await sender.call('flood', { size: SIZE });
  await pause(warmMs);
  const watch = watching(cast.server.pid);
  const windows = await Promise.all(fast.map((worker) => worker.call('measure', { ms })));
  const { items } = await observer.call('show', { view: 'sessions' });
  const resident = watch.stop();
  await sender.call('stop');
  return {
    rate: sum(windows.map(({ rate }) => rate)) / fast.length,
    resident,
    outbox: Math.max(...items.map(({ outboxBytes }) => outboxBytes)),
  };
}

/** The most resident bytes of a process while it is watched. */
function watching(pid) {
  let most = 0;
  const look = () => {
    most = Math.max(most, residentBytes(pid) ?? 0);
  };
  const timer = setInterval(look, SAMPLE_MS).unref();
  return {
    stop() {
      clearInterval(timer);
      look();
      return most;
    },
  };
}

function compare({ eight, alone, beside }) {
  return {
    ratio: beside.rate / alone.rate,
    ratioOfEight: beside.rate / eight.rate,
    fastRate: beside.rate,
    rateAlone: alone.rate,
    rateOfEight: eight.rate,
    outboxMiB: beside.outbox / 2 ** 20,
    moreMiB: (beside.resident - eight.resident) / 2 ** 20,
    residentMiB: beside.resident / 2 ** 20,
  };
}

/** One subscriber that never keeps up, beside seven fast ones; against those alone, and against eight fast ones. */
const scenario = {
  name: 'slow',
  title: 'a slow subscriber beside 7 fast ones',
  systems: ['trunkline'],
  quick: ['trunkline'],
  async run(bench) {
    const times = bench.quick ? { warmMs: 300, ms: 900 } : { warmMs: 1500, ms: 4000 };
    const rounds = [];
    const opened = [];
    try {
      for (const [name, who] of Object.entries(casts)) opened.push({ name, field: await open(who) });
      // in a quick run, too, one round would tell more of the machine than of the dispatcher
      for (let round = 0; round < Math.max(3, bench.rounds); round++) {
        const rates = {};
        for (const { name, field } of turned(opened, round)) rates[name] = await measure(field, times);
        rounds.push(compare(rates));
      }
    } finally {
      await Promise.all(opened.map(({ field }) => field.cast.close()));
    }
    const row = (value, title, unit, targets) => ({
      name: `slow-${value}`,
      title,
      unit,
      value,
      better: value.startsWith('ratio') ? 'more' : 'less',
      results: { trunkline: rounds },
      targets,
    });
    return [
      row('ratio', 'rate of 7 fast ones beside a slow one, of 7 alone', '×', [{ atLeast: 0.95 }]),
      row('ratioOfEight', 'rate of 7 fast ones beside a slow one, of 8 fast ones', '×', [{ atLeast: 0.95 }]),
      row('outboxMiB', 'outbox of the slow one', 'MiB', [{ atMost: OUTBOX / 2 ** 20 }]),
      row('moreMiB', 'daemon, most resident, more than with 8 fast', 'MiB', [{ atMost: MEMORY_MIB }]),
      row('residentMiB', 'daemon, most resident', 'MiB', []),
    ];
  },
};

export default [scenario];
