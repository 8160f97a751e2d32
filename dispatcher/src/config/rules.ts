import { resolve } from 'node:path';
import { TrunklineError } from '@trunkline/proto';
import { type Address, parseAddress } from '@trunkline/proto/address';
import { clash, reaches } from './address-rules.js';
import type { JsonDocument } from './document.js';
import {
  builtInReturnHandlers,
  builtInSendHandlers,
  queueOptionDefaults,
  queueOptionNames,
  serviceDefaults,
  sessionDefaults,
} from './input.js';
import { ServerKeyCheck } from './key-files.js';
import { hint, type Path } from './problems.js';
import {
  type CodeRange,
  maxCode,
  maxDuration,
  maxQueueSize,
  maxSize,
  parseCode,
  parseDuration,
  parseSize,
} from './units.js';

export interface RuleOptions {
  /** Folder that module paths are taken from. */
  readonly baseDirectory: string;
  /** Whether a module's file is there; left out: not checked. */
  readonly moduleExists?: (path: string) => boolean;
  /** Text of a key file, or an Error whose message says why not; left out: a file that names one is refused. */
  readonly readKeyFile?: (path: string) => string;
}

type Dictionary = Readonly<Record<string, unknown>>;

/**
 * The rules between the parts of a file that a schema cannot express. They run on files with schema problems too, so
 * that everything is reported at once; a part of the wrong type is left to the schema.
 */
export function checkRules(document: JsonDocument, options: RuleOptions): void {
  const root = dictionary(document.value);
  const owners: Owner[] = list(root.services).map((service, index) => ({
    at: ['services', index],
    options: dictionary(service),
  }));
  const defaults: Owner = { at: ['defaults'], options: dictionary(root.defaults) };
  checkCodes(document, owners);
  checkModules(document, dictionary(root.modules), options);
  const listen = checkListen(document, root);
  const serverKeys = new ServerKeyCheck(document);
  for (const owner of [defaults, ...owners]) {
    checkHandlers(document, owner, dictionary(root.modules));
    checkProviders(document, owner, listen, serverKeys);
    checkBounds(document, owner);
  }
  checkSession(document, root);
  checkQueues(document, root, owners);
  for (const owner of owners)
    if (!isQueue(owner)) checkCombinations(document, owner, defaults, dictionary(root.session));
}

/** Something that carries service options: a service or `defaults`. */
interface Owner {
  readonly at: Path;
  readonly options: Dictionary;
}

const dictionary = (value: unknown): Dictionary =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Dictionary) : {};
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const own = (object: Dictionary, key: string): unknown => (Object.hasOwn(object, key) ? object[key] : undefined);

function checkCodes(document: JsonDocument, services: readonly Owner[]): void {
  const ranges: (CodeRange & { readonly at: Path })[] = [];
  for (const { at, options } of services) {
    const range = parseCode(own(options, 'code'));
    if (range === undefined || (typeof options.code === 'number' && range.to > maxCode)) continue;
    const path = [...at, 'code'];
    if (range.to > maxCode) document.report(path, `the highest service code is ${maxCode}`);
    else if (range.from > range.to)
      document.report(path, `the range ends before it begins; "${range.to}-${range.from}"?`);
    else ranges.push({ ...range, at: path });
  }
  // ranges of different widths may overlap, the narrower wins; of one width neither would
  const width = (range: CodeRange): number => range.to - range.from;
  ranges.sort((a, b) => width(a) - width(b) || a.from - b.from || compareIndex(a.at, b.at));
  for (const [index, range] of ranges.entries()) {
    const before = ranges[index - 1];
    if (before === undefined || width(before) !== width(range) || before.to < range.from) continue;
    const [first, second] = compareIndex(before.at, range.at) < 0 ? [before, range] : [range, before];
    const both = range.from === before.to ? `${range.from}` : `${range.from}-${before.to}`;
    const what = width(range) === 0 ? `the code ${both} is` : `the codes ${both} are, in a range of the same width,`;
    document.report(second.at, `${what} also at ${document.placeOf(first.at)}`);
  }
}

const compareIndex = (a: Path, b: Path): number => Number(a[1]) - Number(b[1]);

const isQueue = ({ options }: Owner): boolean => own(options, 'kind') === 'queue';

/** Options of the other kind, and what queues need of each other and of the rest. */
function checkQueues(document: JsonDocument, root: Dictionary, owners: readonly Owner[]): void {
  const queues = new Set(owners.filter(isQueue).map(({ options }) => own(options, 'code')));
  for (const owner of owners) {
    const { at, options } = owner;
    const foreign = isQueue(owner) ? Object.keys(serviceDefaults) : queueOptionNames;
    const kind = isQueue(owner) ? 'live services' : 'queues (kind "queue")';
    for (const name of foreign) {
      if (Object.hasOwn(options, name)) document.report([...at, name], `an option of ${kind} only`, 'key');
    }
    if (isQueue(owner)) checkQueue(document, root, owner, queues);
    checkRecord(document, owner, queues);
  }
}

function checkRecord(document: JsonDocument, owner: Owner, queues: Set<unknown>): void {
  const record = own(owner.options, 'record');
  if (record === undefined) return;
  const at = [...owner.at, 'record'];
  if (isQueue(owner)) document.report(at, 'an option of live services only', 'key');
  const inside = typeof record === 'object';
  const queue = inside ? own(dictionary(record), 'queue') : record;
  if (typeof queue === 'number' && !queues.has(queue)) {
    document.report(inside ? [...at, 'queue'] : at, `no queue has the code ${queue}`);
  }
  if (inside && own(dictionary(record), 'params') !== undefined && typeof own(owner.options, 'code') === 'string') {
    document.report([...at, 'params'], 'which of the codes? Requests are kept for a single code only');
  }
}

function checkQueue(document: JsonDocument, root: Dictionary, { at, options }: Owner, queues: Set<unknown>): void {
  const code = own(options, 'code');
  if (typeof code === 'string') document.report([...at, 'code'], 'a queue has a single code, no range');
  const storage = own(options, 'storage') ?? queueOptionDefaults.storage;
  if (storage === 'disk' && own(root, 'dataDirectory') === undefined) {
    const path = Object.hasOwn(options, 'storage') ? [...at, 'storage'] : at;
    document.report(path, 'a queue on disk needs dataDirectory; a queue in memory has "storage": "memory"');
  }
  const deadLetter = own(options, 'deadLetter');
  if (deadLetter !== undefined && deadLetter === code) {
    document.report([...at, 'deadLetter'], 'a queue cannot be its own dead letter queue');
  } else if (typeof deadLetter === 'number' && !queues.has(deadLetter)) {
    document.report([...at, 'deadLetter'], `no queue has the code ${deadLetter}`);
  }
  for (const name of ['maxAge', 'retain', 'ackTimeout']) checkDuration(document, [...at, name], own(options, name));
  checkSize(document, [...at, 'maxBytes'], own(options, 'maxBytes'), 1, maxQueueSize);
  checkSize(document, [...at, 'maxMessage'], own(options, 'maxMessage'), 1);
}

function checkModules(document: JsonDocument, modules: Dictionary, options: RuleOptions): void {
  const builtIn: Dictionary = { sendHandlers: builtInSendHandlers, returnHandlers: builtInReturnHandlers };
  for (const kind of ['sendHandlers', 'returnHandlers', 'onProbe', 'messageTypes']) {
    for (const [name, module] of Object.entries(dictionary(own(modules, kind)))) {
      const at = ['modules', kind, name];
      if (list(builtIn[kind]).includes(name)) document.report(at, `"${name}" is built in; choose another name`, 'key');
      const path = own(dictionary(module), 'path');
      if (typeof path !== 'string' || path === '' || options.moduleExists === undefined) continue;
      const resolved = resolve(options.baseDirectory, path);
      if (path.includes('\0') || !options.moduleExists(resolved)) {
        document.report([...at, 'path'], `module not found: ${resolved}`);
      }
    }
  }
}

/** Reports a wrong address at its place. */
function addressAt(document: JsonDocument, path: Path, value: unknown, use: 'listen' | 'dial'): Address | undefined {
  if (typeof value !== 'string' || value === '') return undefined;
  try {
    return parseAddress(value, { listen: use === 'listen' });
  } catch (error) {
    if (!(error instanceof TrunklineError)) throw error;
    document.report(path, error.message);
    return undefined;
  }
}

interface Listening {
  readonly address: Address;
  readonly at: Path;
}

function checkListen(document: JsonDocument, root: Dictionary): Listening[] {
  const listening: Listening[] = [];
  for (const [index, value] of list(own(root, 'listen')).entries()) {
    const at = ['listen', index];
    const address = addressAt(document, at, value, 'listen');
    if (address === undefined) continue;
    const other = listening.find((one) => clash(one.address, address));
    if (other !== undefined) document.report(at, `the same address is listened at by ${document.placeOf(other.at)}`);
    listening.push({ address, at });
  }
  return listening;
}

function checkProviders(
  document: JsonDocument,
  { at, options }: Owner,
  listening: readonly Listening[],
  serverKeys: ServerKeyCheck,
): void {
  const seen = new Map<unknown, { readonly entry: unknown; readonly at: Path }>();
  for (const [index, entry] of list(own(options, 'providers')).entries()) {
    const whole = [...at, 'providers', index];
    serverKeys.check(entry, whole);
    const [path, value] =
      typeof entry === 'string' ? [whole, entry] : [[...whole, 'address'], dictionary(entry).address];
    const address = addressAt(document, path, value, 'dial');
    const twin = seen.get(value);
    // two equal entries are the schema's
    if (twin !== undefined && JSON.stringify(twin.entry) !== JSON.stringify(entry)) {
      document.report(path, `the same address is already at ${document.placeOf(twin.at)}`);
    }
    seen.set(value, { entry, at: path });
    if (address === undefined) continue;
    const self = listening.find((one) => reaches(address, one.address));
    if (self !== undefined) {
      document.report(path, `the dispatcher would dial itself: it listens at ${document.placeOf(self.at)}`);
    }
  }
}

function checkHandlers(document: JsonDocument, { at, options }: Owner, modules: Dictionary): void {
  const names = (kind: string): string[] => Object.keys(dictionary(own(modules, kind)));
  const check = (path: Path, value: unknown, what: string, known: readonly string[]): void => {
    if (typeof value !== 'string' || value === '' || known.includes(value)) return;
    const there = known.length === 0 ? 'none is configured' : `there are: ${[...new Set(known)].join(', ')}`;
    document.report([...at, ...path], `no ${what} is named "${value}"; ${there}${hint(value, known)}`);
  };
  check(['sendHandler'], own(options, 'sendHandler'), 'send handler', [
    ...builtInSendHandlers,
    ...names('sendHandlers'),
  ]);
  const returnHandlers = [...builtInReturnHandlers, ...names('returnHandlers')];
  for (const [index, name] of list(own(options, 'returnHandlers')).entries()) {
    check(['returnHandlers', index], name, 'return handler', returnHandlers);
  }
  check(['onProbe'], own(options, 'onProbe'), 'module of modules.onProbe', names('onProbe'));
}

function checkBounds(document: JsonDocument, { at, options }: Owner): void {
  for (const name of ['resendAfter', 'resendCap', 'probeAfter', 'linger']) {
    checkDuration(document, [...at, name], own(options, name));
  }
  for (const name of ['maxParams', 'maxKept']) {
    checkSize(document, [...at, 'limits', name], own(dictionary(own(options, 'limits')), name), 1);
  }
}

function checkDuration(document: JsonDocument, at: Path, value: unknown): void {
  const duration = parseDuration(value);
  if (duration === undefined || duration <= maxDuration) return;
  document.report(at, `${String(value)} is too long; the most is ${maxDuration}ms, about 596h`);
}

function checkSize(document: JsonDocument, at: Path, value: unknown, minimum: number, maximum = maxSize): void {
  const bytes = parseSize(value);
  if (bytes === undefined) return;
  if (bytes < minimum) document.report(at, `${String(value)} is too small; the least is ${minimum} bytes`);
  // a plain number above the maximum is the schema's
  if (bytes > maximum && typeof value === 'string') {
    document.report(at, `${value} is too large; the most is ${maximum} bytes`);
  }
}

function checkSession(document: JsonDocument, root: Dictionary): void {
  const session = dictionary(own(root, 'session'));
  checkDuration(document, ['session', 'heartbeat'], own(session, 'heartbeat'));
  checkDuration(document, ['drain'], own(root, 'drain'));
  for (const name of ['maxMessage', 'receiveWindow', 'outbox']) {
    checkSize(document, ['session', name], own(session, name), 1024);
  }
  const heartbeat = parseDuration(own(session, 'heartbeat') ?? sessionDefaults.heartbeat);
  const factor = own(session, 'livenessFactor') ?? sessionDefaults.livenessFactor;
  if (heartbeat === undefined || typeof factor !== 'number' || heartbeat > maxDuration) return;
  if (heartbeat * factor > maxDuration) {
    document.report(['session', 'heartbeat'], `heartbeat times livenessFactor is above ${maxDuration}ms`);
  }
}

/** What holds for a service once `defaults` are filled in, reported at the innermost place that says it. */
function checkCombinations(document: JsonDocument, service: Owner, defaults: Owner, session: Dictionary): void {
  const found = (names: Path, builtIn: unknown): { value: unknown; at: Path | undefined } => {
    for (const owner of [service, defaults]) {
      let value: unknown = owner.options;
      for (const name of names) value = own(dictionary(value), String(name));
      if (value !== undefined) return { value, at: [...owner.at, ...names] };
    }
    return { value: builtIn, at: undefined };
  };
  const inner = (one: Path | undefined, other: Path | undefined): Path =>
    [one, other].find((at) => at?.[0] === 'services') ?? one ?? other ?? service.at;

  const after = found(['resendAfter'], serviceDefaults.resendAfter);
  const cap = found(['resendCap'], serviceDefaults.resendCap);
  const [wait, most] = [parseDuration(after.value), parseDuration(cap.value)];
  // zero is the schema's
  if (wait && most && most < wait) {
    document.report(inner(cap.at, after.at), `resendCap (${cap.value}) is below resendAfter (${after.value})`);
  }

  const params = found(['limits', 'maxParams'], serviceDefaults.limits.maxParams);
  const message = own(session, 'maxMessage') ?? sessionDefaults.maxMessage;
  const [paramsBytes, messageBytes] = [parseSize(params.value), parseSize(message)];
  if (paramsBytes !== undefined && messageBytes !== undefined && paramsBytes >= messageBytes) {
    const at = params.at ?? (Object.hasOwn(session, 'maxMessage') ? ['session', 'maxMessage'] : service.at);
    document.report(at, `limits.maxParams (${params.value}) is not below session.maxMessage (${message})`);
  }
}
