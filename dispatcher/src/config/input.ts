import type { Overflow } from '../service.js';

/** The shape of a configuration file; what each key means stands in the JSON Schema (`schema.ts`). */
export interface ConfigurationInput {
  $schema?: string;
  listen: string[];
  dataDirectory?: string;
  defaults?: ServiceOptionsInput;
  services: ServiceInput[];
  modules?: ModulesInput;
  session?: Partial<SessionInput>;
  tokens?: string[];
  token?: string;
  curve?: CurveInput;
  drain?: string;
  log?: { level?: LogLevel };
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** Bytes, or with a unit: `65536`, `"64KiB"`. */
export type SizeInput = number | string;

/** Paths of key files. */
export interface CurveInput {
  publicKeyFile: string;
  secretKeyFile: string;
  allowedKeysFile?: string;
}

/** Address of a static provider, with the public key that it must have. */
export type ProviderInput = string | { address: string; serverKey?: string };

export interface LimitsInput {
  maxStreams: number;
  maxSubscribers: number;
  maxParams: SizeInput;
  maxKept: SizeInput;
}

export type KeepInput = 'none' | 'last' | 'lastPerKey' | { lastPerKey: number } | { ring: number };

/** Everything that may stand in `defaults` as well as in a service. */
export interface ServiceOptions {
  providers: 'dynamic' | ProviderInput[];
  sendHandler: string;
  returnHandlers: string[];
  overflow: Overflow[];
  resendAfter: string;
  resendCap: string;
  probeAfter: string;
  probeMisses: number;
  requestWindow: number;
  linger: string;
  keep: KeepInput;
  latestRate: number;
  limits: LimitsInput;
  onProbe: string;
}

export type ServiceOptionsInput = Partial<Omit<ServiceOptions, 'limits'>> & { limits?: Partial<LimitsInput> };

/** Options of a service of kind "queue". */
export interface QueueOptionsInput {
  storage: 'memory' | 'disk';
  maxMessages: number;
  maxBytes: SizeInput;
  maxAge: string;
  retain: string;
  full: 'dropOldest' | 'refuse';
  ackTimeout: string;
  maxDeliveries: number;
  deadLetter: number;
  maxMessage: SizeInput;
}

/** The code of a queue, or with the params of requests that are kept alive for it. */
export type RecordInput = number | { queue: number; params?: unknown[] };

export type ServiceInput = ServiceOptionsInput &
  Partial<QueueOptionsInput> & { code: number | string; name?: string; kind?: 'live' | 'queue'; record?: RecordInput };

export interface ModuleInput {
  path: string;
  options?: unknown;
}

export interface ModulesInput {
  sendHandlers?: Record<string, ModuleInput>;
  returnHandlers?: Record<string, ModuleInput>;
  onProbe?: Record<string, ModuleInput>;
  messageTypes?: Record<string, ModuleInput>;
}

export interface SessionInput {
  heartbeat: string;
  livenessFactor: number;
  maxMessage: SizeInput;
  receiveWindow: SizeInput;
  outbox: SizeInput;
  maxSessions: number;
  maxSubscriptions: number;
}

/** What holds where neither the service nor `defaults` says anything. The JSON Schema takes its `default`s from here. */
export const serviceDefaults: Readonly<ServiceOptions> = {
  providers: 'dynamic',
  sendHandler: 'failover',
  returnHandlers: ['broadcast', 'group', 'latest'],
  overflow: ['dropOldest', 'latest', 'disconnect'],
  resendAfter: '2s',
  resendCap: '30s',
  probeAfter: '10s',
  probeMisses: 3,
  requestWindow: 1024,
  linger: '0s',
  keep: 'none',
  latestRate: 10,
  limits: { maxStreams: 100_000, maxSubscribers: 1_000_000, maxParams: '64KiB', maxKept: '16MiB' },
  onProbe: '',
};

/** Without `maxMessages` and `deadLetter`: no bound by count, no dead letter queue. */
export const queueOptionDefaults: Readonly<Omit<QueueOptionsInput, 'maxMessages' | 'deadLetter'>> = {
  storage: 'disk',
  maxBytes: '256MiB',
  maxAge: '0s',
  retain: '0s',
  full: 'refuse',
  ackTimeout: '30s',
  maxDeliveries: 0,
  maxMessage: '50MiB',
};
export const queueOptionNames: readonly string[] = [...Object.keys(queueOptionDefaults), 'maxMessages', 'deadLetter'];

export const sessionDefaults: Readonly<SessionInput> = {
  heartbeat: '2s',
  livenessFactor: 3,
  maxMessage: '64MiB',
  receiveWindow: '4MiB',
  outbox: '4MiB',
  maxSessions: 100_000,
  maxSubscriptions: 2_000_000,
};

export const drainDefault = '5s';
export const logLevelDefault: LogLevel = 'info';
/** Values kept per stream by `"keep": "lastPerKey"` without a number. */
export const lastPerKeyDefault = 10_000;

export const builtInSendHandlers: readonly string[] = ['failover', 'roundRobin', 'hash', 'all'];
export const builtInReturnHandlers: readonly string[] = ['broadcast', 'group', 'latest'];
export const logLevels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];
