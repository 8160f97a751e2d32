import { type QueueOptions, queueDefaults } from '@trunkline/dispatcher';
import { ADDRESS, type Fault, type Scenario } from '../scenario.js';
import { Dice } from '../world.js';

export const ORDERS = 5001;
export const TASKS = 5002;
export const DEAD = 5003;
export const RING = 5004;

/** Of the disk; those of processes and connections are the others'. */
export const DISK_FAULTS = ['diskFull', 'diskFails', 'slowDisk', 'readFails'] as const;
export type DiskFault = (typeof DISK_FAULTS)[number];

const FAULTS: readonly Fault[] = [
  'break',
  'partition',
  'loss',
  'double',
  'spike',
  'subscriberCrash',
  'pause',
  'dispatcherCrash',
  'dispatcherCrash',
  'dispatcherStop',
];

/** A group of a queue. */
export interface GroupPlan {
  readonly code: number;
  readonly name: string;
  readonly filter: string;
  readonly start: 'earliest' | 'latest';
  matches(id: number): boolean;
}

export const keyOf = (id: number): string => `k${id % 3}`;
const all = () => true;

export const GROUPS: readonly GroupPlan[] = [
  { code: ORDERS, name: 'red', filter: '', start: 'earliest', matches: all },
  { code: ORDERS, name: 'blue', filter: '', start: 'latest', matches: all },
  { code: ORDERS, name: 'picky', filter: 'key == "k1"', start: 'earliest', matches: (id) => keyOf(id) === 'k1' },
  { code: TASKS, name: 'red', filter: '', start: 'earliest', matches: all },
  { code: DEAD, name: 'morgue', filter: '', start: 'earliest', matches: all },
  { code: RING, name: 'red', filter: '', start: 'earliest', matches: all },
];

export interface QueueScenario extends Scenario {
  readonly diskFaults: readonly DiskFault[];
  readonly members: readonly string[];
  readonly flush: readonly [number, number];
}

export function makeQueueScenario(seed: number): QueueScenario {
  const dice = new Dice(seed * 6007 + 29);
  const options = (more: Partial<QueueOptions>): QueueOptions => ({ ...queueDefaults, ...more });
  const queue = (code: number, more: Partial<QueueOptions>) => ({ code, name: `q${code}`, options: options(more) });
  return {
    configuration: {
      listen: [{ address: ADDRESS }],
      services: [],
      queues: [
        queue(ORDERS, { ackTimeout: dice.pick([1000, 3000]) }),
        queue(TASKS, { ackTimeout: 1500, maxDeliveries: dice.pick([2, 4]), deadLetter: DEAD }),
        queue(DEAD, { ackTimeout: 2000 }),
        queue(RING, { storage: 'memory', ackTimeout: 1000, maxMessages: dice.pick([5, 50]), full: 'dropOldest' }),
      ],
      dataDirectory: '/data',
      modules: { sendHandlers: [], returnHandlers: [], onProbe: [], messageTypes: [] },
      session: {
        heartbeat: 1000,
        livenessFactor: 3,
        maxMessageBytes: 65536,
        receiveWindow: dice.pick([1000, 20_000]),
        outboxBytes: 30_000,
        maxSessions: 100,
        maxSubscriptions: 1000,
      },
      tokens: [],
      token: '',
      curve: undefined,
      serverKeys: {},
      drain: 400,
      log: { level: 'error' },
    },
    processes: [],
    faults: dice.some(FAULTS, dice.pick([0.2, 0.5, 1])),
    diskFaults: dice.chance(0.6) ? dice.some(DISK_FAULTS, 0.4) : [],
    members: Array.from({ length: dice.between(2, 4) }, (_, index) => `queue-user-${index + 1}`),
    flush: dice.pick([
      [0, 2],
      [1, 20],
      [5, 120],
    ] as const),
    faultMs: dice.between(4, 10) * 1000,
    faultEvery: dice.pick([300, 700, 2000]),
    network: { delay: dice.pick([1, 1, 10]), jitter: dice.pick([1, 5, 60]), redial: dice.pick([20, 200]) },
    blackout: false,
    dear: false,
  };
}
