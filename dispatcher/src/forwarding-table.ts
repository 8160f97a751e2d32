import { TrunklineError } from '@trunkline/proto';
import type { Configuration, CurveDefinition, ModuleReference, ServiceDefinition } from './service.js';

const maxCode = 0xffff_ffff;

/**
 * Service code → service definition. Built once, then read only: a reload builds a new table, so the old one stays
 * whole until the new one is ready. `find` takes O(log n) whatever the ranges look like.
 */
export class ForwardingTable {
  readonly services: readonly ServiceDefinition[];
  /** Where a new piece of the code space begins, ascending; `owners[k]` serves the codes from `starts[k]` on. */
  readonly #starts: Float64Array;
  readonly #owners: readonly (ServiceDefinition | undefined)[];

  /**
   * The narrowest range that holds a code wins; between ranges of one width the earlier in the list (a configuration
   * file with such an overlap is refused before it gets here).
   * @throws TrunklineError CONFIG_INVALID for a range that is empty or outside 1..4294967295
   */
  constructor(services: readonly ServiceDefinition[]) {
    for (const { from, to } of services) {
      if (!Number.isInteger(from) || !Number.isInteger(to) || from < 1 || to > maxCode || from > to) {
        throw new TrunklineError('CONFIG_INVALID', `${from}-${to} is no range of service codes`);
      }
    }
    this.services = [...services];
    [this.#starts, this.#owners] = paint(this.services);
  }

  /** The definition that serves a code, if any. */
  find(code: number): ServiceDefinition | undefined {
    const starts = this.#starts;
    let low = 0;
    let high = starts.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((starts[middle] as number) <= code) low = middle + 1;
      else high = middle;
    }
    return Number.isInteger(code) ? this.#owners[low - 1] : undefined;
  }
}

/** Cuts the code space at every border and lets the services claim the pieces, the narrowest first. */
function paint(services: readonly ServiceDefinition[]): [Float64Array, (ServiceDefinition | undefined)[]] {
  const borders = new Set<number>();
  for (const { from, to } of services) borders.add(from).add(to + 1);
  const starts = Float64Array.from(borders).sort();
  const pieceAt = new Map<number, number>();
  for (const [piece, start] of starts.entries()) pieceAt.set(start, piece);
  const owners = new Array<ServiceDefinition | undefined>(starts.length).fill(undefined);
  // next[k] leads to the first piece from k on that nobody claimed, so that each piece is visited about once
  const next = Int32Array.from({ length: starts.length + 1 }, (_, piece) => piece);
  const free = (piece: number): number => {
    let root = piece;
    while (next[root] !== root) root = next[root] as number;
    for (let walk = piece; next[walk] !== root; ) {
      const after = next[walk] as number;
      next[walk] = root;
      walk = after;
    }
    return root;
  };
  const narrowestFirst = [...services].sort((a, b) => a.to - a.from - (b.to - b.from));
  for (const service of narrowestFirst) {
    const end = pieceAt.get(service.to + 1) as number;
    for (let piece = free(pieceAt.get(service.from) as number); piece < end; piece = free(piece)) {
      owners[piece] = service;
      next[piece] = piece + 1;
    }
  }
  return [starts, owners];
}

/** What became of one entry of the forwarding table; entries are told apart by their range. */
export interface ServiceChange {
  readonly before: ServiceDefinition;
  readonly after: ServiceDefinition;
  /** Names of the fields that differ. */
  readonly fields: readonly string[];
}

export interface TableDiff {
  readonly added: readonly ServiceDefinition[];
  readonly removed: readonly ServiceDefinition[];
  readonly changed: readonly ServiceChange[];
}

/**
 * Compares by value, so the same content in another order or layout is no change. A single code can move to another
 * entry without either entry changing (a narrower range came or went): for a given code compare
 * `before.find(code)` with `after.find(code)` by `changedFields`.
 */
export function diffTables(
  before: { readonly services: readonly ServiceDefinition[] },
  after: { readonly services: readonly ServiceDefinition[] },
): TableDiff {
  const old = new Map(before.services.map((service) => [rangeOf(service), service]));
  const added: ServiceDefinition[] = [];
  const changed: ServiceChange[] = [];
  for (const service of after.services) {
    const was = old.get(rangeOf(service));
    old.delete(rangeOf(service));
    if (was === undefined) {
      added.push(service);
      continue;
    }
    const fields = changedFields(was, service);
    if (fields.length > 0) changed.push({ before: was, after: service, fields });
  }
  return { added, removed: [...old.values()], changed };
}

/** Names of the fields in which two definitions differ by value; none: they are the same service. */
export function changedFields(a: ServiceDefinition, b: ServiceDefinition): string[] {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]) as Set<keyof ServiceDefinition>;
  return [...names].filter((name) => !sameValue(a[name], b[name]));
}

export interface ConfigurationDiff {
  readonly services: TableDiff;
  /**
   * Changed settings outside the table that a reload applies: `tokens` and `token` (for later HELLOs), `serverKey` and
   * `curve.allowedKeysFile` (for later connections), `queues`, `drain`, `log.level`.
   */
  readonly live: readonly string[];
  /** Changed settings that need a restart: `listen`, `curve…`, `dataDirectory`, `session.…`, `modules.<kind>.<name>`. */
  readonly restart: readonly string[];
  /** Nothing differs at all. */
  readonly unchanged: boolean;
}

/**
 * What a reload would do. Sessions were told `session.…` in WELCOME, sockets are bound to `listen` and a loaded module
 * cannot be unloaded: those keep their old value until a restart. A changed order of `listen` is no change.
 */
export function diffConfigurations(before: Configuration, after: Configuration): ConfigurationDiff {
  const services = diffTables(before, after);
  const live: string[] = [];
  if (!sameValue([...before.tokens].sort(), [...after.tokens].sort())) live.push('tokens');
  if (!sameValue(byCode(before), byCode(after))) live.push('queues');
  if (before.token !== after.token) live.push('token');
  if (!sameValue(before.serverKeys, after.serverKeys)) live.push('serverKey');
  if (before.drain !== after.drain) live.push('drain');
  if (before.log.level !== after.log.level) live.push('log.level');
  const restart: string[] = [];
  if (!sameValue(addressesOf(before), addressesOf(after))) restart.push('listen');
  if (before.dataDirectory !== after.dataDirectory) restart.push('dataDirectory');
  diffCurve(before.curve, after.curve, live, restart);
  for (const name of Object.keys(after.session) as (keyof Configuration['session'])[]) {
    if (before.session[name] !== after.session[name]) restart.push(`session.${name}`);
  }
  for (const kind of Object.keys(after.modules) as (keyof Configuration['modules'])[]) {
    for (const name of changedModules(before.modules[kind], after.modules[kind])) {
      restart.push(`modules.${kind}.${name}`);
    }
  }
  const entries = services.added.length + services.removed.length + services.changed.length;
  return { services, live, restart, unchanged: entries + live.length + restart.length === 0 };
}

/** CURVE, its list and the own pair belong to sockets that are bound; who is on the list is asked at each handshake. */
function diffCurve(
  before: CurveDefinition | undefined,
  after: CurveDefinition | undefined,
  live: string[],
  restart: string[],
): void {
  if (before === undefined || after === undefined) {
    if (before !== after) restart.push('curve');
    return;
  }
  if (before.publicKey !== after.publicKey) restart.push('curve.publicKeyFile', 'curve.secretKeyFile');
  if ((before.allowedKeys === undefined) !== (after.allowedKeys === undefined)) restart.push('curve.allowedKeysFile');
  else if (!sameValue(keySet(before), keySet(after))) live.push('curve.allowedKeysFile');
}

const keySet = ({ allowedKeys = [] }: CurveDefinition): string[] => [...new Set(allowedKeys)].sort();

/** What is in force after a reload: what needs a restart stays. A list is never lost, nor is encryption. */
export function keptCurve(
  before: CurveDefinition | undefined,
  after: CurveDefinition | undefined,
): CurveDefinition | undefined {
  if (before?.allowedKeys === undefined || after?.allowedKeys === undefined) return before;
  return { ...before, allowedKeys: after.allowedKeys };
}

function changedModules(before: readonly ModuleReference[], after: readonly ModuleReference[]): string[] {
  const old = new Map(before.map((module) => [module.name, module]));
  const fresh = new Map(after.map((module) => [module.name, module]));
  const names = new Set([...old.keys(), ...fresh.keys()]);
  return [...names].filter((name) => !sameValue(old.get(name), fresh.get(name)));
}

const rangeOf = (service: ServiceDefinition): string => `${service.from}-${service.to}`;

const byCode = ({ queues }: Configuration): object => Object.fromEntries(queues.map((queue) => [queue.code, queue]));

const addressesOf = (configuration: Configuration): string[] =>
  configuration.listen.map(({ address }) => address).sort();

/** Equality of JSON values: the order of keys does not matter, the order of elements does. */
function sameValue(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((element, index) => sameValue(element, b[index]));
  }
  const left = a as Record<string, unknown>;
  const right = b as Record<string, unknown>;
  const keys = Object.keys(left);
  if (keys.length !== Object.keys(right).length) return false;
  return keys.every((key) => Object.hasOwn(right, key) && sameValue(left[key], right[key]));
}
