import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import {
  type Configuration,
  ConfigurationError,
  type ConfigurationProblem,
  parseConfiguration,
} from '@trunkline/dispatcher';

export const configFolder = new URL('../../../../config/', import.meta.url);

export const shippedBytes = (name: string): Uint8Array => new Uint8Array(readFileSync(new URL(name, configFolder)));

export const minimal = { listen: ['tcp://127.0.0.1:7400'], services: [] as unknown[] };

export function parseText(text: string | Uint8Array): Configuration {
  const bytes = typeof text === 'string' ? new TextEncoder().encode(text) : text;
  return parseConfiguration(bytes, { baseDirectory: '/etc/trunkline' }).configuration;
}

export const parse = (value: unknown): Configuration => parseText(JSON.stringify(value));

export function problemsOfText(text: string | Uint8Array): readonly ConfigurationProblem[] {
  try {
    parseText(text);
  } catch (error) {
    assert.ok(error instanceof ConfigurationError, String(error));
    assert.equal(error.code, 'CONFIG_INVALID');
    assert.ok(error.problems.length > 0);
    return error.problems;
  }
  return [];
}

/** `PATH: message` of every problem. */
export const linesOfText = (text: string | Uint8Array): string[] =>
  problemsOfText(text).map(({ path, message }) => `${path}: ${message}`);

export const linesOf = (value: unknown): string[] => linesOfText(JSON.stringify(value));

/** Problems of a file with these services and nothing else unusual. */
export const linesOfServices = (...services: unknown[]): string[] => linesOf({ ...minimal, services });

/** Exactly these problems, in any order; each expectation is a whole line or a pattern for one. */
export function expectLines(actual: readonly string[], expected: readonly (string | RegExp)[]): void {
  const left = [...actual];
  for (const line of expected) {
    const index = left.findIndex((one) => (typeof line === 'string' ? one === line : line.test(one)));
    assert.ok(index >= 0, `no problem like ${line} in\n${actual.join('\n')}`);
    left.splice(index, 1);
  }
  assert.deepEqual(left, [], 'more problems than expected');
}
