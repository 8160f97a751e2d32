import { Field } from '../lib/field.mjs';
import { interleave } from '../lib/rounds.mjs';

/** Deliveries a second with senders that send as fast as they can. */
function throughput({ name, title, targets = [], quick = [], ...shape }) {
  return {
    name,
    title,
    systems: ['trunkline', 'limit', 'nats', 'redis', 'mosquitto', 'rabbitmq'],
    /** Systems in a quick run; empty: not part of it. */
    quick,
    async run(bench) {
      const times = bench.quick ? { warmMs: 500, ms: 800 } : { warmMs: 1500, ms: 4000 };
      const results = await interleave(bench, (system) => Field.open(system, shape), {
        measure: (field) => field.throughput(times),
      });
      return [
        { name, title, unit: 'deliveries/s', value: 'rate', better: 'more', bytes: shape.size, results, targets },
      ];
    },
  };
}

const all = ['trunkline', 'limit', 'nats'];
const against = (system, atLeast) => ({ against: system, atLeast });

export default [
  throughput({ name: 'pair-16', title: '1 → 1, 16 B', senders: 1, receivers: 1, size: 16 }),
  throughput({
    name: 'pair-100',
    title: '1 → 1, 100 B',
    senders: 1,
    receivers: 1,
    size: 100,
    quick: all,
    targets: [against('nats', 3), against('limit', 0.75)],
  }),
  throughput({ name: 'pair-1k', title: '1 → 1, 1 KiB', senders: 1, receivers: 1, size: 1024 }),
  throughput({
    name: 'pair-16k',
    title: '1 → 1, 16 KiB',
    senders: 1,
    receivers: 1,
    size: 16 * 1024,
    quick: all,
    targets: [against('nats', 1.5)],
  }),
  throughput({
    name: 'fan-8',
    title: '1 → 8, 100 B',
    senders: 1,
    receivers: 8,
    size: 100,
    quick: all,
    targets: [against('nats', 5), against('limit', 0.75)],
  }),
  throughput({
    name: 'fan-64',
    title: '1 → 64, 100 B',
    senders: 1,
    receivers: 64,
    size: 100,
    quick: all,
    targets: [against('nats', 3)],
  }),
  throughput({ name: 'many-8', title: '8 → 8, 100 B', senders: 8, receivers: 8, size: 100 }),
];
