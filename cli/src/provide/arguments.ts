import { TrunklineError } from '@trunkline/proto';
import { toJson } from '../json.js';

/** `{{name}}` stands for the text `{name}`. */
const placeholder = /\{\{([A-Za-z_][\w.-]*)\}\}|\{([A-Za-z_][\w.-]*)\}/g;

/** What no command takes for an option. */
const number = /^-\d[\d.eE+-]*$/;

/**
 * Puts params in the place of `{name}` in each argument, and never more than one argument in the place of one: no
 * shell reads them. A param cannot become an option either, unless it stands behind `--`, where none are looked for.
 * @throws TrunklineError REFUSED: a param is missing, or cannot be an argument
 */
export function fillArguments(templates: readonly string[], params: unknown): string[] {
  const fields = typeof params === 'object' && params !== null ? (params as Readonly<Record<string, unknown>>) : {};
  const end = templates.indexOf('--');
  return templates.map((template, index) => {
    const filled = template.replaceAll(placeholder, (_, literal: string | undefined, name: string) =>
      literal === undefined ? argumentOf(fields, name) : `{${literal}}`,
    );
    const isOption = filled.startsWith('-') && !template.startsWith('-') && !number.test(filled);
    if (isOption && (end < 0 || index < end)) {
      throw new TrunklineError('REFUSED', `the param for ${template} may not begin with "-"`);
    }
    return filled;
  });
}

function argumentOf(fields: Readonly<Record<string, unknown>>, name: string): string {
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (value === undefined || value === null) {
    throw new TrunklineError('REFUSED', `the command needs the param ${JSON.stringify(name)}`);
  }
  const text = typeof value === 'string' ? value : toJson(value);
  if (text.includes('\0')) throw new TrunklineError('REFUSED', `the param ${JSON.stringify(name)} has a NUL character`);
  return text;
}
