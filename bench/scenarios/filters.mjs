import { setTimeout as pause } from 'node:timers/promises';
import { Cast } from '../lib/cast.mjs';

const CODE = 1;
const COUNT = 10_000;
const SIZE = 100;

const byKey = (n) => `key == "k${n}"`;
const byRange = (n) => `attrs.n >= ${n} && attrs.n < ${n + 1}`;
const each = (filter) => Array.from({ length: COUNT }, (_, n) => filter(n));

/** Every response goes to one subscription, with `half` to two; in `one` it is always the same one. */
const cases = {
  one: { keys: 1, filters: [byKey(0)] },
  keys: { keys: COUNT, filters: each(byKey) },
  half: { keys: COUNT, filters: [...each(byKey).slice(0, COUNT / 2), ...each(byRange).slice(COUNT / 2)] },
  ranges: { keys: COUNT, filters: each(byRange) },
};

async function measureCase({ keys, filters }, { warmMs, ms }) {
  return Cast.with('trunkline', async (cast) => {
    const provider = await cast.provider({ codes: [CODE] });
    const subscriber = await cast.subscriber();
    await subscriber.call('subscribeFilters', { code: CODE, filters });
    await provider.call('floodKeys', { keys, size: SIZE });
    await pause(warmMs);
    const rate = await subscriber.call('measure', { ms });
    await provider.call('stop');
    return rate;
  });
}

/** One stream, one subscriber with 10,000 subscriptions that differ in their filters, against one with one filter. */
const scenario = {
  name: 'filters',
  title: '10,000 filters on one stream',
  systems: ['trunkline'],
  quick: ['trunkline'],
  async run(bench) {
    const times = bench.quick ? { warmMs: 700, ms: 1000 } : { warmMs: 1500, ms: 4000 };
    const names = bench.quick ? ['one', 'keys'] : Object.keys(cases);
    const rounds = [];
    for (let round = 0; round < bench.rounds; round++) {
      const result = {};
      for (const name of names) {
        const rate = await measureCase(cases[name], times);
        result[`${name}Us`] = 1e6 / rate;
      }
      rounds.push(result);
    }
    const results = { trunkline: rounds.map((round) => ({ ...round, ratio: round.keysUs / round.oneUs })) };
    const row = (name, title, value, unit, targets = []) => ({
      name: `filters-${name}`,
      title,
      unit,
      value,
      better: 'less',
      results,
      targets,
    });
    const rows = [
      row('ratio', '10,000 key filters against 1, per delivery', 'ratio', '×', [{ atMost: 2 }]),
      row('one', '1 filter, per delivery', 'oneUs', 'µs'),
      row('keys', '10,000 filters key == "…", per delivery', 'keysUs', 'µs'),
    ];
    if (bench.quick) return rows;
    return [
      ...rows,
      row('half', '5,000 by key, 5,000 ranges, per delivery', 'halfUs', 'µs'),
      row('ranges', '10,000 ranges, no index possible, per delivery', 'rangesUs', 'µs'),
    ];
  },
};

export default [scenario];
