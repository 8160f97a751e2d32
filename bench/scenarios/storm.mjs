import { Cast } from '../lib/cast.mjs';
import { STORM } from '../systems/trunkline.mjs';

const COUNT = 100_000;
const CONNECTIONS = 100;

/** From the first call until all are accepted, ms; and what the dispatcher and the provider saw of it. */
async function trunklineStorm({ distinct }) {
  return Cast.with('trunkline', async (cast) => {
    const provider = await cast.provider({ codes: [STORM] });
    const subscriber = await cast.subscriber({ connections: distinct ? 1 : CONNECTIONS });
    const count = distinct ? COUNT : COUNT / CONNECTIONS;
    const ms = await subscriber.call('storm', { code: STORM, count, distinct });
    const { counters } = await subscriber.call('show', { view: 'status' });
    const { asked } = await provider.call('counts');
    return { ms, asked, resends: counters.resends };
  });
}

function natsStorm() {
  return Cast.with('nats', async (cast) => {
    const worker = cast.worker('subscriber');
    const args = { system: 'nats', url: cast.url, first: 0, count: COUNT, wave: COUNT };
    return { ms: await worker.call('subscribeIdle', args) };
  });
}

const distinct = {
  name: 'storm-distinct',
  title: '100,000 distinct requests',
  systems: ['trunkline', 'nats'],
  quick: ['trunkline', 'nats'],
  async run(bench) {
    const results = { trunkline: [] };
    const nats = bench.systems.find(({ name }) => name === 'nats');
    if (nats !== undefined) results.nats = [];
    for (let round = 0; round < bench.rounds; round++) {
      results.trunkline.push(await trunklineStorm({ distinct: true }));
      if (nats === undefined) continue;
      const other = await bench.attempt(nats, natsStorm);
      if (other !== undefined) results.nats.push(other);
    }
    const title = '100,000 distinct requests of one client';
    const own = { trunkline: results.trunkline };
    return [
      row('storm-distinct', title, 'ms', 'ms', results, [{ against: 'nats', atMost: 1 }]),
      row('storm-distinct-resends', `${title}: sent again`, 'resends', 'requests', own, [{ atMost: 0 }]),
      row('storm-distinct-upstream', `${title}: upstream`, 'asked', 'requests', own, [
        { atLeast: COUNT, atMost: COUNT },
      ]),
    ];
  },
};

const identical = {
  name: 'storm-identical',
  title: '100,000 identical requests',
  systems: ['trunkline'],
  quick: ['trunkline'],
  async run(bench) {
    const rounds = [];
    for (let round = 0; round < bench.rounds; round++) rounds.push(await trunklineStorm({ distinct: false }));
    const title = '100,000 identical requests, 100 connections';
    const results = { trunkline: rounds };
    return [
      row('storm-identical', title, 'ms', 'ms', results, []),
      row('storm-identical-upstream', `${title}: upstream`, 'asked', 'requests', results, [{ atLeast: 1, atMost: 1 }]),
    ];
  },
};

function row(name, title, value, unit, results, targets) {
  return { name, title, unit, value, better: 'less', results, targets };
}

export default [distinct, identical];
