import { existsSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Configuration, CurveDefinition } from '../service.js';
import { buildConfiguration } from './build.js';
import { checkSchema } from './check-schema.js';
import { JsonDocument } from './document.js';
import type { ConfigurationInput } from './input.js';
import { loadCurve, readKeyFile } from './key-files.js';
import { ConfigurationError, type ConfigurationProblem } from './problems.js';
import { reasonOf } from './reason.js';
import { checkRules, type RuleOptions } from './rules.js';

/** Largest file that is read, in bytes: room for some hundred thousand services. */
export const maxFileBytes = 64 * 1024 * 1024;

export interface LoadedConfiguration {
  readonly configuration: Configuration;
}

/**
 * A configuration from the bytes of its file: whole, with defaults filled in and every rule checked, or not at all.
 * @throws ConfigurationError with every problem: syntax, keys given twice, schema, rules between parts
 */
export function parseConfiguration(bytes: Uint8Array, options: RuleOptions): LoadedConfiguration {
  const document = new JsonDocument(bytes);
  let curve: CurveDefinition | undefined;
  if (document.value !== undefined) {
    checkSchema(document);
    checkRules(document, options);
    curve = loadCurve(document, options);
  }
  if (document.problems.length > 0) throw new ConfigurationError([...document.problems].sort(byPlace));
  return { configuration: buildConfiguration(document.value as ConfigurationInput, options.baseDirectory, curve) };
}

const byPlace = (a: ConfigurationProblem, b: ConfigurationProblem): number =>
  (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);

/**
 * Reads and checks a file with the key files it names, and that the modules it names are there. Start and reload both come through here, so they
 * refuse the same files with the same words (F89).
 * @throws ConfigurationError also where the file is missing or cannot be read
 */
export async function readConfiguration(file: string): Promise<LoadedConfiguration> {
  const bytes = await readBytes(file);
  try {
    return parseConfiguration(bytes, { baseDirectory: dirname(resolve(file)), moduleExists: existsSync, readKeyFile });
  } catch (error) {
    throw error instanceof ConfigurationError ? new ConfigurationError(error.problems, file) : error;
  }
}

async function readBytes(file: string): Promise<Uint8Array> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(file, 'r');
    // one byte more than allowed tells a file that is too large, or one without an end, from one that just fits
    const parts: Uint8Array[] = [];
    let length = 0;
    for await (const part of handle.createReadStream({ end: maxFileBytes, autoClose: false })) {
      parts.push(part as Uint8Array);
      length += (part as Uint8Array).length;
    }
    if (length > maxFileBytes) throw fileError(file, `the file is larger than ${maxFileBytes} bytes`);
    return Buffer.concat(parts, length);
  } catch (error) {
    throw error instanceof ConfigurationError ? error : fileError(file, reasonOf(error));
  } finally {
    await handle?.close();
  }
}

const fileError = (file: string, message: string): ConfigurationError =>
  new ConfigurationError([{ path: '$', message }], file);
