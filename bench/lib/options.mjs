import { parseArgs } from 'node:util';

export const usage = `npm run bench -- [options]            live streams
npm run bench -- queues [options]     durable queues
  --quick          every target, short windows, under two minutes
  --only A,B       scenarios whose name begins with one of these
  --rounds N       rounds per system (default 5, quick 1); medians are reported
  --peers A,B      of nats, redis, mosquitto, rabbitmq, limit; of queues: redis-stream, rabbitmq-quorum,
                   rabbitmq-classic, jetstream, redis-raw, jetstream-raw; "none" for Trunkline alone
  --json FILE      machine, versions, every round
  --list           names of the scenarios`;

/** @throws Error with a text for the user */
export function readOptions(args, systems) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string' },
      rounds: { type: 'string' },
      peers: { type: 'string' },
      json: { type: 'string' },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const rounds = Number(values.rounds ?? (values.quick ? 1 : 5));
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error('--rounds takes an integer from 1');
  const peers = words(values.peers)?.filter((name) => name !== 'none');
  const unknown = peers?.find((name) => !Object.values(systems).flat().includes(name));
  if (unknown !== undefined) throw new Error(`--peers: there is no ${unknown}`);
  const [group = 'live', ...more] = positionals;
  if (!(group in systems) || more.length > 0) throw new Error(`there is no ${positionals.join(' ')} to measure`);
  return { ...values, group, rounds, only: words(values.only), peers };
}

function words(text) {
  return text?.split(',').filter((word) => word !== '');
}
