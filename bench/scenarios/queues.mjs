import { Field } from '../lib/field.mjs';
import { QueueField } from '../lib/queue-field.mjs';
import { interleave } from '../lib/rounds.mjs';
import live from '../systems/trunkline.mjs';

const consumed = ['trunkline', 'redis-stream', 'rabbitmq-quorum', 'rabbitmq-classic', 'jetstream'];
const all = [...consumed, 'redis-raw', 'jetstream-raw'];

const against = (system, atLeast) => ({ against: system, atLeast });

/** Measurements of one kind in one field: each shape is a row. */
function scenario({ name, systems, shapes, measure }) {
  return {
    name,
    title: shapes.map(({ title }) => title).join('; '),
    group: 'queues',
    systems,
    quick: systems,
    async run(bench) {
      const results = await interleave(bench, (system) => QueueField.open(system), {
        async measure(field) {
          const byRow = {};
          for (const shape of shapes) byRow[shape.name] = await measure(field, shape, bench.quick);
          return byRow;
        },
      });
      return shapes.map((shape) => row(shape, results));
    },
  };
}

function row({ name, title, targets = [], ...shape }, results) {
  const entries = Object.entries(results).map(([system, rounds]) => [system, rounds.map((round) => round[name])]);
  const own = Object.fromEntries(entries);
  return { name, title, unit: 'messages/s', value: 'rate', better: 'more', ...shape, results: own, targets };
}

const publish = scenario({
  name: 'queue-publish',
  systems: all,
  shapes: [
    {
      name: 'queue-publish-2048',
      title: 'durable publish, 2,048 in flight, 100 B',
      inFlight: 2048,
      size: 100,
      targets: [against('redis-stream', 3), against('rabbitmq-quorum', 6), against('jetstream', 10)],
    },
    {
      name: 'queue-publish-256',
      title: 'durable publish, 256 in flight, 100 B',
      inFlight: 256,
      size: 100,
      targets: [against('redis-stream', 1.5)],
    },
    {
      name: 'queue-publish-2048-1k',
      title: 'durable publish, 2,048 in flight, 1 KiB',
      inFlight: 2048,
      size: 1024,
      targets: [against('redis-stream', 2)],
    },
    { name: 'queue-publish-256-1k', title: 'durable publish, 256 in flight, 1 KiB', inFlight: 256, size: 1024 },
  ],
  measure: (field, { inFlight, size }, quick) =>
    field.publish({ inFlight, size, warmMs: quick ? 500 : 1000, ms: quick ? 1000 : 3000 }),
});

const groups = scenario({
  name: 'queue-groups',
  systems: consumed,
  shapes: [
    {
      name: 'queue-group-1',
      title: 'publish → consume → ack, 1 group, 100 B',
      groups: 1,
      size: 100,
      targets: [against('redis-stream', 4), against('rabbitmq-quorum', 8), against('jetstream', 15)],
    },
    {
      name: 'queue-group-1-1k',
      title: 'publish → consume → ack, 1 group, 1 KiB',
      groups: 1,
      size: 1024,
      targets: [against('redis-stream', 2)],
    },
    { name: 'queue-group-3', title: 'publish → consume → ack, 3 groups, 100 B', groups: 3, size: 100 },
    { name: 'queue-group-3-1k', title: 'publish → consume → ack, 3 groups, 1 KiB', groups: 3, size: 1024 },
  ],
  measure: (field, shape, quick) =>
    field.groups({ groups: shape.groups, size: shape.size, inFlight: 2048, ms: quick ? 1000 : 3000 }),
});

const drain = scenario({
  name: 'queue-drain',
  systems: consumed,
  shapes: [{ name: 'queue-drain', title: 'backlog drained, 1 group, 100 B', size: 100 }],
  measure: (field, { size }, quick) => field.drain({ count: quick ? 100_000 : 1_000_000, size, inFlight: 2048 }),
});

const LIVE_RATE = 20_000;

/**
 * Live fan-out with the queue idle, with a queue of the same dispatcher at full speed, and with one of another
 * dispatcher: the last is what the machine does to it, whoever it is that uses the processors.
 */
const beside = {
  name: 'queue-live',
  title: 'live 1 → 8 beside a durable queue at full speed',
  group: 'queues',
  systems: ['trunkline'],
  quick: ['trunkline'],
  async run(bench) {
    const [system] = bench.systems;
    if (system === undefined) return [];
    const results = { trunkline: [], without: [], elsewhere: [] };
    const fields = [];
    try {
      for (let count = 0; count < 2; count++) fields.push(await QueueField.open(system));
      const [own, other] = fields;
      const { url, pid } = own;
      const server = { url, pid, stop: async () => {} };
      const shape = { senders: 1, receivers: 8, size: 100, stamps: true };
      const field = await Field.open({ ...live, start: async () => server }, shape);
      fields.push(field);
      const times = bench.quick ? { warmMs: 200, ms: 1500 } : { warmMs: 500, ms: 5000 };
      const measure = () => field.latency({ rate: LIVE_RATE, ...times });
      const load = { size: 100, inFlight: 2048 };
      await measure();
      for (let round = 0; round < bench.rounds; round++) {
        results.without.push(await measure());
        results.trunkline.push(await own.busy(load, measure));
        results.elsewhere.push(await other.busy(load, measure));
      }
    } finally {
      for (const field of fields.reverse()) await field.close();
    }
    return ['p50', 'p99'].map((value) => ({
      name: `queue-live-${value}`,
      title: `live 1 → 8, ${LIVE_RATE.toLocaleString('en')} msg/s beside a queue, ${value}`,
      unit: 'µs',
      value,
      better: 'less',
      results,
      targets: value === 'p99' ? [{ against: 'without', atMost: 2 }] : [],
    }));
  },
};

export default [publish, groups, drain, beside];
