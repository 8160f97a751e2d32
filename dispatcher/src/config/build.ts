import { resolve } from 'node:path';
import { TrunklineError } from '@trunkline/proto';
import type { QueueDeclaration, QueueOptions } from '../queues/index.js';
import type {
  Configuration,
  CurveDefinition,
  Keep,
  ModuleReference,
  RecordDefinition,
  ServiceDefinition,
} from '../service.js';
import {
  type ConfigurationInput,
  drainDefault,
  type KeepInput,
  type LimitsInput,
  lastPerKeyDefault,
  logLevelDefault,
  type ModuleInput,
  type QueueOptionsInput,
  queueOptionDefaults,
  type RecordInput,
  type ServiceInput,
  type ServiceOptions,
  type ServiceOptionsInput,
  type SizeInput,
  serviceDefaults,
  sessionDefaults,
} from './input.js';
import { addressOf, serverKeysOf } from './key-files.js';
import { parseCode, parseDuration, parseSize } from './units.js';

/** Fills in the defaults. The input has passed the schema and every rule. */
export function buildConfiguration(
  input: ConfigurationInput,
  baseDirectory: string,
  curve: CurveDefinition | undefined,
): Configuration {
  const modules = (entries: Record<string, ModuleInput> = {}): ModuleReference[] =>
    Object.entries(entries).map(([name, { path, options = {} }]) => ({
      name,
      path: resolve(baseDirectory, path),
      options,
    }));
  const session = { ...sessionDefaults, ...input.session };
  return {
    listen: input.listen.map((address) => ({ address })),
    services: input.services
      .filter(({ kind }) => kind !== 'queue')
      .map((service) => buildService(service, input.defaults ?? {})),
    queues: input.services.filter(({ kind }) => kind === 'queue').map(buildQueue),
    dataDirectory: input.dataDirectory === undefined ? undefined : resolve(baseDirectory, input.dataDirectory),
    modules: {
      sendHandlers: modules(input.modules?.sendHandlers),
      returnHandlers: modules(input.modules?.returnHandlers),
      onProbe: modules(input.modules?.onProbe),
      messageTypes: modules(input.modules?.messageTypes).map((module) => ({ ...module, type: Number(module.name) })),
    },
    session: {
      heartbeat: milliseconds(session.heartbeat),
      livenessFactor: session.livenessFactor,
      maxMessageBytes: bytes(session.maxMessage),
      receiveWindow: bytes(session.receiveWindow),
      outboxBytes: bytes(session.outbox),
      maxSessions: session.maxSessions,
      maxSubscriptions: session.maxSubscriptions,
    },
    tokens: input.tokens ?? [],
    token: input.token ?? '',
    curve,
    serverKeys: serverKeysOf([input.defaults, ...input.services].map((owner) => owner?.providers)),
    drain: milliseconds(input.drain ?? drainDefault),
    log: { level: input.log?.level ?? logLevelDefault },
  };
}

function buildService(service: ServiceInput, defaults: ServiceOptionsInput): ServiceDefinition {
  const option = <Name extends Exclude<keyof ServiceOptions, 'limits'>>(name: Name): ServiceOptions[Name] =>
    (service[name] ?? defaults[name] ?? serviceDefaults[name]) as ServiceOptions[Name];
  const limit = <Name extends keyof LimitsInput>(name: Name): LimitsInput[Name] =>
    service.limits?.[name] ?? defaults.limits?.[name] ?? serviceDefaults.limits[name];
  const { from, to } = known(parseCode(service.code), service.code);
  return {
    from,
    to,
    name: service.name ?? String(service.code),
    providers: addresses(option('providers')),
    sendHandler: option('sendHandler'),
    returnHandlers: option('returnHandlers'),
    overflow: option('overflow'),
    resendAfter: milliseconds(option('resendAfter')),
    resendCap: milliseconds(option('resendCap')),
    probeAfter: milliseconds(option('probeAfter')),
    probeMisses: option('probeMisses'),
    requestWindow: option('requestWindow'),
    linger: milliseconds(option('linger')),
    keep: buildKeep(option('keep')),
    latestRate: option('latestRate'),
    limits: {
      maxStreams: limit('maxStreams'),
      maxSubscribers: limit('maxSubscribers'),
      maxParams: bytes(limit('maxParams')),
      maxKept: bytes(limit('maxKept')),
    },
    onProbe: option('onProbe'),
    ...(service.record === undefined ? {} : { record: buildRecord(service.record) }),
  };
}

function buildRecord(record: RecordInput): RecordDefinition {
  return typeof record === 'number'
    ? { queue: record, params: [] }
    : { queue: record.queue, params: record.params ?? [] };
}

function buildQueue({ code, name, ...input }: ServiceInput): QueueDeclaration {
  return { code: Number(code), name: name ?? String(code), options: buildQueueOptions(input) };
}

/** Fills in the defaults of a queue. The input has passed the schema. */
export function buildQueueOptions(input: Partial<QueueOptionsInput>): QueueOptions {
  const { maxMessages = 0, deadLetter = 0, ...rest } = input;
  const options = { ...queueOptionDefaults, ...rest };
  return {
    storage: options.storage,
    maxMessages,
    maxBytes: bytes(options.maxBytes),
    maxAge: milliseconds(options.maxAge),
    retain: milliseconds(options.retain),
    full: options.full,
    ackTimeout: milliseconds(options.ackTimeout),
    maxDeliveries: options.maxDeliveries,
    deadLetter,
    maxMessage: bytes(options.maxMessage),
  };
}

const addresses = (providers: ServiceOptions['providers']): ServiceDefinition['providers'] =>
  providers === 'dynamic' ? providers : providers.map(addressOf);

function buildKeep(keep: KeepInput): Keep {
  if (keep === 'lastPerKey') return { mode: 'lastPerKey', max: lastPerKeyDefault };
  if (typeof keep === 'string') return { mode: keep };
  return 'ring' in keep ? { mode: 'ring', size: keep.ring } : { mode: 'lastPerKey', max: keep.lastPerKey };
}

const milliseconds = (text: string): number => known(parseDuration(text), text);
const bytes = (value: SizeInput): number => known(parseSize(value), value);

/** The schema has accepted the text before; that it cannot be read after all would be a fault of this package. */
function known<T>(value: T | undefined, text: unknown): T {
  if (value === undefined) throw new TrunklineError('CONFIG_INVALID', `${JSON.stringify(text)} cannot be read`);
  return value;
}
