import { parseArgs } from 'node:util';

export const usage = `npm run bench -- [options]
  --quick          every target, short windows, under two minutes
  --only A,B       scenarios whose name begins with one of these
  --rounds N       rounds per system (default 5, quick 1); medians are reported
  --peers A,B      of nats, redis, mosquitto, rabbitmq, limit; "none" for Trunkline alone
  --json FILE      machine, versions, every round
  --list           names of the scenarios`;

/** @throws Error with a text for the user */
export function readOptions(args, systems) {
  const { values } = parseArgs({
    args,
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
  const unknown = peers?.find((name) => !systems.includes(name));
  if (unknown !== undefined) throw new Error(`--peers: there is no ${unknown}`);
  return { ...values, rounds, only: words(values.only), peers };
}

function words(text) {
  return text?.split(',').filter((word) => word !== '');
}
