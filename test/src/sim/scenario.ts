import type { Configuration, Keep, Overflow, ServiceDefinition } from '@trunkline/dispatcher';
import type { SessionLimits } from '@trunkline/proto';
import type { NetworkTimes } from './network.js';
import { Dice } from './world.js';

export const DISPATCHER = 'dispatcher';
export const ADDRESS = 'sim://dispatcher';
/** Nobody ever listens here. */
export const NOWHERE = 'sim://nowhere';
export const STRANGER = 'stranger';
export const TOKEN = 'token of the simulation';

export const FAULTS = [
  'break',
  'partition',
  'loss',
  'double',
  'spike',
  'subscriberCrash',
  'providerCrash',
  'pause',
  'dispatcherCrash',
  'dispatcherStop',
  'reload',
  'reroute',
  'withdraw',
  'amnesia',
  'stranger',
] as const;
export type Fault = (typeof FAULTS)[number];

/** Codes of which a handler answers with one final response. */
export const FINAL_CODES: readonly number[] = [2001];

export interface ProcessPlan {
  readonly name: string;
  /** Codes it provides; none: it only subscribes. */
  readonly codes: readonly number[];
  /** Where it is dialled; undefined: it dials in. */
  readonly address: string | undefined;
  readonly subscribes: boolean;
  readonly receiveWindow: number;
}

/** Everything about a run that does not change while it runs. */
export interface Scenario {
  readonly configuration: Configuration;
  readonly processes: readonly ProcessPlan[];
  readonly faults: readonly Fault[];
  /** How long faults are made, ms, and how often. */
  readonly faultMs: number;
  readonly faultEvery: number;
  readonly network: NetworkTimes;
  /** Whether the providers are all taken away once, after the faults. */
  readonly blackout: boolean;
  /** Whether messages are dear to handle now and then, so that what was received waits for later turns. */
  readonly dear: boolean;
}

export const limits: Partial<SessionLimits> = {
  heartbeat: 1000,
  livenessFactor: 3,
  maxMessage: 65536,
  helloAfter: 200,
  helloCap: 1000,
};

/** Codes that dialled-in providers serve, and their groups. */
const DYNAMIC = [1001, 1002, 1003, 1004, 3001, 3007, 2001];
const STATIC = [1101, 1102];
/** Two processes that subscribe to each other (rule 13). */
const MUTUAL = [4001, 4002];
const STATIC_ADDRESSES = ['sim://static-1', 'sim://static-2'];

export function makeScenario(seed: number): Scenario {
  const dice = new Dice(seed * 7919 + 17);
  const subscribers = dice.between(2, 5);
  const dynamics = dice.between(1, 2);
  const statics = dice.between(1, 2);
  const processes: ProcessPlan[] = [];
  const windowOf = () => dice.pick([1500, 3000, 8000, 60_000]);
  for (let index = 1; index <= dynamics; index++) {
    // every code has a provider, and some have several
    const codes = index === 1 ? DYNAMIC : dice.some(DYNAMIC, 0.6);
    processes.push(plan(`provider-${index}`, codes, undefined, false, windowOf()));
  }
  for (let index = 0; index < statics; index++) {
    processes.push(plan(`static-${index + 1}`, STATIC, STATIC_ADDRESSES[index], false, windowOf()));
  }
  for (let index = 1; index <= subscribers; index++) {
    processes.push(plan(`subscriber-${index}`, [], undefined, true, windowOf()));
  }
  if (dice.chance(0.5)) {
    for (const code of MUTUAL) processes.push(plan(`both-${code}`, [code], undefined, true, windowOf()));
  }
  return {
    configuration: configurationOf(dice, STATIC_ADDRESSES.slice(0, statics)),
    processes,
    // a few kinds of faults at a time find more than all of them together
    faults: dice.some(FAULTS, dice.pick([0.15, 0.3, 0.6, 1])),
    faultMs: dice.between(6, 18) * 1000,
    faultEvery: dice.pick([400, 1000, 2500]),
    network: { delay: dice.pick([1, 1, 10]), jitter: dice.pick([1, 5, 60]), redial: dice.pick([20, 200]) },
    blackout: dice.chance(0.25),
    dear: dice.chance(0.3),
  };
}

function plan(
  name: string,
  codes: readonly number[],
  address: string | undefined,
  subscribes: boolean,
  receiveWindow: number,
): ProcessPlan {
  return { name, codes, address, subscribes, receiveWindow };
}

const ALL_OVERFLOWS: readonly Overflow[] = ['dropOldest', 'latest', 'disconnect', 'block'];

function configurationOf(dice: Dice, addresses: readonly string[]): Configuration {
  const service = (
    from: number,
    to: number,
    providers: 'dynamic' | readonly string[],
    more = {},
  ): ServiceDefinition => ({
    from,
    to,
    name: `service-${from}`,
    providers,
    sendHandler: dice.pick(['failover', 'roundRobin', 'hash', 'all']),
    returnHandlers: ['broadcast', 'group', 'latest'],
    overflow: [...ALL_OVERFLOWS].sort(() => dice.next() - 0.5),
    resendAfter: dice.pick([200, 400]),
    resendCap: 1600,
    probeAfter: dice.pick([500, 900, 2000]),
    probeMisses: dice.between(1, 3),
    requestWindow: dice.between(1, 4),
    linger: dice.pick([0, 0, 300, 1500]),
    keep: keepOf(dice),
    latestRate: dice.pick([2, 10]),
    limits: { maxStreams: 1000, maxSubscribers: 1000, maxParams: 1024, maxKept: 65_536 },
    onProbe: '',
    ...more,
  });
  return {
    listen: [{ address: ADDRESS }],
    services: [
      service(1001, 1001, 'dynamic', { sendHandler: 'failover' }),
      service(1002, 1002, 'dynamic'),
      service(1003, 1003, 'dynamic'),
      service(1004, 1004, 'dynamic', { sendHandler: 'all' }),
      service(1101, 1101, addresses),
      service(1102, 1102, [...addresses].reverse()),
      service(2001, 2001, 'dynamic', { keep: { mode: 'none' }, sendHandler: 'failover' }),
      service(3000, 3009, 'dynamic'),
      service(4001, 4001, 'dynamic'),
      service(4002, 4002, 'dynamic'),
    ],
    queues: [],
    dataDirectory: undefined,
    modules: { sendHandlers: [], returnHandlers: [], onProbe: [], messageTypes: [] },
    session: {
      heartbeat: 1000,
      livenessFactor: 3,
      maxMessageBytes: 65536,
      receiveWindow: dice.pick([4000, 20_000, 200_000]),
      outboxBytes: dice.pick([1200, 4000, 30_000]),
      maxSessions: 100,
      maxSubscriptions: 1000,
    },
    tokens: dice.chance(0.3) ? [TOKEN] : [],
    token: '',
    curve: undefined,
    serverKeys: {},
    drain: 400,
    log: { level: 'error' },
  };
}

function keepOf(dice: Dice): Keep {
  return dice.pick<Keep>([
    { mode: 'none' },
    { mode: 'last' },
    { mode: 'lastPerKey', max: dice.pick([2, 10]) },
    { mode: 'ring', size: dice.pick([3, 40]) },
  ]);
}

/** Another table: what a reload may change. The codes stay, but for those that go for a while. */
export function changed(configuration: Configuration, dice: Dice): Configuration {
  const services = configuration.services
    .filter(() => dice.chance(0.95))
    .map((service) => (dice.chance(0.3) ? { ...service, ...changeOf(service, dice) } : service));
  return { ...configuration, services };
}

/** A table that sends every stream elsewhere, or to one provider instead of all. */
export function rerouted(configuration: Configuration, dice: Dice): Configuration {
  const services = configuration.services.map((service) => {
    if (service.providers !== 'dynamic') return { ...service, providers: [dice.pick(STATIC_ADDRESSES)] };
    return { ...service, sendHandler: service.sendHandler === 'all' ? 'failover' : 'all' };
  });
  return { ...configuration, services };
}

function changeOf(service: ServiceDefinition, dice: Dice): Partial<ServiceDefinition> {
  switch (dice.between(1, 4)) {
    case 1:
      return { keep: keepOf(dice) };
    case 2:
      return { linger: dice.pick([0, 300, 1500]) };
    case 3:
      return service.providers === 'dynamic'
        ? { sendHandler: dice.pick(['failover', 'roundRobin', 'hash', 'all']) }
        : { providers: dice.some(service.providers, 0.5) };
    default:
      return { latestRate: dice.pick([2, 10]) };
  }
}

/** Params in several spellings, and the one text that each means (rule 1). */
export const PARAMS: readonly { readonly values: readonly unknown[]; readonly text: string }[] = [
  {
    values: [
      { a: 1, b: 2 },
      { b: 2, a: 1 },
      { b: 2n, a: 1, c: undefined },
    ],
    text: '{"a":1,"b":2}',
  },
  { values: [{ a: 'x:b=y' }], text: '{"a":"x:b=y"}' },
  {
    values: [
      { a: 'x', b: 'y' },
      { b: 'y', a: 'x' },
    ],
    text: '{"a":"x","b":"y"}',
  },
  { values: [1, 1n], text: '1' },
  { values: ['1'], text: '"1"' },
  { values: [9007199254740993n], text: '9007199254740993' },
  { values: [9007199254740992n], text: '9007199254740992' },
  { values: [{ n: { deep: [1, { x: null }] } }], text: '{"n":{"deep":[1,{"x":null}]}}' },
  { values: [[[1], { x: null }]], text: '[[1],{"x":null}]' },
  { values: [undefined], text: '' },
];
/** A provider refuses these. */
export const REFUSED_PARAMS = { values: ['refuse me'], text: '"refuse me"' };

/** What every response says of itself. */
export interface Body {
  /** Process that sent it. */
  readonly p: string;
  /** Number of the handler run: unique over all processes. */
  readonly s: number;
  /** Counts the responses of a run, from 1. */
  readonly n: number;
  readonly c: number;
  /** Params as the provider got them. */
  readonly q: string;
  /** Generation it was started with. */
  readonly g: number;
  readonly v: number;
}

export interface FilterCase {
  readonly text: string;
  matches(body: Body): boolean;
}

export const keyOf = (n: number): string => `k${n % 3}`;

export const FILTERS: readonly FilterCase[] = [
  { text: 'attrs.v > 4', matches: (body) => body.v > 4 },
  { text: 'key == "k1"', matches: (body) => keyOf(body.n) === 'k1' },
  { text: 'key == "k1" && attrs.v < 6', matches: (body) => keyOf(body.n) === 'k1' && body.v < 6 },
  { text: 'tag == "t0" || body.v == 3', matches: (body) => body.n % 2 === 0 || body.v === 3 },
  { text: 'attrs.v >= 0', matches: () => true },
];
