import { Cast } from '../lib/cast.mjs';
import { now } from '../lib/clock.mjs';
import { STORM } from '../systems/trunkline.mjs';

const COUNT = 10_000;
const PROCESSES = 4;

/** Kills the dispatcher and starts it again at its address: how long until every subscription has a message again? */
async function measure() {
  return Cast.with('trunkline', async (cast) => {
    await cast.provider({ codes: [STORM], answers: true });
    const share = COUNT / PROCESSES;
    const workers = await Promise.all(Array.from({ length: PROCESSES }, () => cast.subscriber()));
    await Promise.all(
      workers.map((worker, index) =>
        worker.call('subscribeFlowing', { code: STORM, first: index * share, count: share }),
      ),
    );
    await cast.server.stop('SIGKILL');
    await Promise.all(workers.map((worker) => worker.call('expectFlow')));
    const begin = now();
    const started = cast.system.start({ port: cast.server.port }).then((server) => {
      cast.server = server;
      return now();
    });
    const ends = await Promise.all(workers.map((worker) => worker.call('flowed')));
    const listening = await started;
    return { ms: (Math.max(...ends) - begin) / 1e6, startMs: (listening - begin) / 1e6 };
  });
}

const scenario = {
  name: 'recovery',
  title: '10,000 subscriptions flow again after a kill of the dispatcher',
  systems: ['trunkline'],
  quick: [],
  async run(bench) {
    const rounds = [];
    for (let round = 0; round < bench.rounds; round++) rounds.push(await measure());
    const row = (value, title) => ({
      name: `recovery-${value}`,
      title,
      unit: 'ms',
      value,
      better: 'less',
      results: { trunkline: rounds },
      targets: [],
    });
    return [
      row('ms', '10,000 subscriptions again, from the new start'),
      row('startMs', '   of which until the dispatcher listens'),
    ];
  },
};

export default [scenario];
