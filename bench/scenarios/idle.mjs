import { setTimeout as pause } from 'node:timers/promises';
import { Cast } from '../lib/cast.mjs';
import { cpuShare, residentBytes } from '../lib/machine.mjs';
import { IDLE } from '../systems/trunkline.mjs';

const COUNT = 1_000_000;
const QUICK_COUNT = 100_000;
const PROCESSES = 4;
/** Subscriptions of a client that wait for their answers at one time. */
const WAVE = 1000;
/** A share of one core that is as good as none. */
const NO_CPU = 0.01;

/** Distinct subscriptions from four clients in four processes. */
async function measure(systemName, { count, settleMs, idleMs }) {
  return Cast.with(systemName, async (cast) => {
    const { url, server } = cast;
    if (systemName === 'trunkline') await cast.provider({ codes: [IDLE] });
    const workers = Array.from({ length: PROCESSES }, () => cast.worker('subscriber'));
    const before = residentBytes(server.pid);
    const begin = process.hrtime.bigint();
    const share = count / PROCESSES;
    await Promise.all(
      workers.map((worker, index) =>
        worker.call('subscribeIdle', { system: systemName, url, first: index * share, count: share, wave: WAVE }),
      ),
    );
    const seconds = Number(process.hrtime.bigint() - begin) / 1e9;
    await pause(settleMs);
    const { cpu } = await cpuShare(server.pid, () => pause(idleMs));
    const after = residentBytes(server.pid);
    return { bytes: (after - before) / count, seconds, cpu, resident: after };
  });
}

const scenario = {
  name: 'idle',
  title: '1,000,000 idle subscriptions',
  systems: ['trunkline', 'nats', 'redis'],
  quick: ['trunkline', 'nats'],
  async run(bench) {
    // memory for each is nearly what it is with a tenth of them
    const count = bench.quick ? QUICK_COUNT : COUNT;
    const times = bench.quick ? { settleMs: 500, idleMs: 2000 } : { settleMs: 10_000, idleMs: 10_000 };
    const results = {};
    // the memory of clients and servers is large and does not scatter: two rounds tell as much as five
    for (let round = 0; round < Math.min(2, bench.rounds); round++) {
      for (const system of bench.systems) {
        const result = await bench.attempt(system, () => measure(system.name, { count, ...times }));
        if (result !== undefined) results[system.name] = [...(results[system.name] ?? []), result];
      }
    }
    const title = `${count.toLocaleString('en')} idle subscriptions`;
    const row = (value, text, unit, targets) => ({
      name: `idle-${value}`,
      title: `${title}, ${text}`,
      unit,
      value,
      better: 'less',
      results,
      targets,
    });
    return [
      row('bytes', 'resident each', 'bytes', [{ against: 'nats', atMost: 1 }]),
      row('cpu', 'idle share of a core', 'cores', [{ atMost: NO_CPU }]),
      row('seconds', 'time to subscribe', 's', []),
    ];
  },
};

export default [scenario];
