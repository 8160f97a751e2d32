import { TrunklineError } from '@trunkline/proto';
import type { QueueOptions } from '../queues/index.js';
import { buildQueueOptions } from './build.js';
import { queueOptionNames } from './input.js';
import { maxCode, maxDuration, maxQueueSize, maxSize, parseDuration, parseSize } from './units.js';

/**
 * Options of a queue as they stand in a configuration file, given at run time.
 * @throws TrunklineError PARAMS_INVALID
 */
export function readQueueOptions(given: unknown): QueueOptions {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return invalid('options must be an object');
  const options = given as Record<string, unknown>;
  for (const name of Object.keys(options)) {
    if (!queueOptionNames.includes(name)) invalid(`${name} is no option of a queue; there are: ${queueOptionNames}`);
  }
  const check = (name: string, valid: (value: unknown) => boolean, what: string) => {
    if (options[name] !== undefined && !valid(options[name])) invalid(`${name} must be ${what}`);
  };
  const among = (least: number, most: number) => (value: unknown) =>
    Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most;
  check('storage', (value) => value === 'disk' || value === 'memory', '"disk" or "memory"');
  check('full', (value) => value === 'refuse' || value === 'dropOldest', '"refuse" or "dropOldest"');
  for (const name of ['maxAge', 'retain', 'ackTimeout']) {
    check(name, (value) => (parseDuration(value) ?? Number.NaN) <= maxDuration, 'a duration such as "30s", or "0s"');
  }
  const size = (most: number) => (value: unknown) => (parseSize(value) ?? Number.NaN) <= most;
  check('maxBytes', size(maxQueueSize), 'a size such as "64MiB"');
  check('maxMessage', size(maxSize), 'a size such as "64MiB"');
  check('maxMessages', among(1, 1_000_000_000), 'an integer from 1');
  check('maxDeliveries', among(0, 1_000_000), 'an integer from 0');
  check('deadLetter', among(1, maxCode), 'a service code');
  const set = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  return buildQueueOptions(set);
}

function invalid(message: string): never {
  throw new TrunklineError('PARAMS_INVALID', message);
}
