import { Field } from '../lib/field.mjs';
import { interleave } from '../lib/rounds.mjs';

const SIZE = 100;
/**
 * Before its first measurement every system runs this long, ms: until then V8 still compiles and optimises the clients
 * (and our daemon) beside them, which takes up to a fifth of the machine and is over after four seconds.
 */
const WARM = { rate: 20_000, ms: 6000, quickMs: 2500 };
const RATES = [1000, 20_000, 100_000];

/** Measured at all rates in a quick run; the others at the highest only. */
const quickBelow = ['trunkline', 'limit', 'nats'];

/** What the row of one percentile at one rate has to be. */
function targetsAt(rate) {
  if (rate < 100_000)
    return () => [
      { against: 'limit', atMost: 1.1 },
      { against: 'nats', atMost: 1.3 },
    ];
  const below = ['nats', 'redis', 'mosquitto'].map((against) => ({ against, atMost: 1 }));
  return (percentile) => (percentile === 'p99' ? below : []);
}

/** Time from when a message was meant to be sent until its handler is called, at fixed rates. */
function latency({ name, title, receivers, quick }) {
  return {
    name,
    title,
    systems: ['trunkline', 'limit', 'nats', 'redis', 'mosquitto', 'rabbitmq'],
    quick,
    async run(bench) {
      const times = bench.quick ? { warmMs: 200, ms: 800 } : { warmMs: 1000, ms: 4000 };
      const warm = new WeakSet();
      const shape = { senders: 1, receivers, size: SIZE, stamps: true };
      const results = await interleave(bench, (system) => Field.open(system, shape), {
        async measure(field) {
          if (!warm.has(field))
            await field.latency({ rate: WARM.rate, warmMs: 0, ms: bench.quick ? WARM.quickMs : WARM.ms });
          warm.add(field);
          const byRate = {};
          for (const rate of RATES) {
            const needless = bench.quick && rate < 100_000 && !quickBelow.includes(field.system.name);
            if (!needless) byRate[rate] = await field.latency({ rate, ...times });
          }
          return byRate;
        },
      });
      return RATES.flatMap((rate) => rows({ name, title, rate, results, quick: bench.quick }));
    },
  };
}

function rows({ name, title, rate, results, quick }) {
  const targets = targetsAt(rate);
  const picked = Object.fromEntries(
    Object.entries(results).map(([system, rounds]) => [system, rounds.map((round) => round[rate]).filter(Boolean)]),
  );
  return ['p50', 'p99'].map((value) => ({
    name: `${name}-${rate}-${value}`,
    title: `${title}, ${rate.toLocaleString('en')} msg/s, ${value}`,
    unit: 'µs',
    value,
    better: 'less',
    results: picked,
    // a quick run does without the slowest peers in the larger scenario
    targets: targets(value).filter(({ against }) => !quick || against in results),
  }));
}

export default [
  latency({
    name: 'latency-1',
    title: 'latency 1 → 1',
    receivers: 1,
    quick: [...quickBelow, 'redis', 'mosquitto'],
  }),
  latency({ name: 'latency-8', title: 'latency 1 → 8', receivers: 8, quick: quickBelow }),
];
