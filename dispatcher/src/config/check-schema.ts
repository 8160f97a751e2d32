import { Ajv, type ErrorObject } from 'ajv';
import type { JsonDocument } from './document.js';
import { hint, type Path } from './problems.js';
import { configurationSchema, type Schema } from './schema.js';

const validate = new Ajv({
  strict: true,
  allErrors: true,
  verbose: true,
  coerceTypes: false,
  useDefaults: false,
}).compile(configurationSchema);

/** Reports everything in which the document departs from the JSON Schema; true if there is nothing. */
export function checkSchema(document: JsonDocument): boolean {
  if (validate(document.value)) return true;
  const errors = validate.errors ?? [];
  const unions = errors.filter((error) => error.keyword === 'anyOf');
  for (const error of errors) {
    if (unions.some((union) => isIdle(error, union))) continue;
    const path = pathOf(error, document.value);
    if (error.keyword === 'additionalProperties') {
      const key = String(error.params.additionalProperty);
      const known = Object.keys((error.parentSchema as Schema).properties ?? {});
      document.report([...path, key], `unknown key${hint(key, known)}`, 'key');
    } else if (error.keyword === 'propertyNames') {
      const { title } = error.schema as Schema;
      document.report([...path, String(error.params.propertyName)], `the key must be ${title}`, 'key');
    } else if (error.keyword === 'required') {
      document.report(path, `the key "${error.params.missingProperty}" is missing`);
    } else if (error.keyword === 'uniqueItems') {
      const [first, second] = [Number(error.params.i), Number(error.params.j)].sort((a, b) => a - b) as [
        number,
        number,
      ];
      document.report([...path, second], `the same value is already at ${document.placeOf([...path, first])}`);
    } else if (error.propertyName === undefined) {
      document.report(path, messageOf(error));
    }
  }
  return false;
}

/**
 * A value that fits no branch of a union yields the errors of all branches. Told are only those of the branch of its
 * own type, or where no branch has its type, the one of the union.
 */
function isIdle(error: ErrorObject, union: ErrorObject): boolean {
  const branches = union.schema as readonly Schema[];
  const meant = branches.findIndex(({ type }) => hasType(union.data, type));
  if (error === union) return meant >= 0;
  if (error.instancePath !== union.instancePath || !error.schemaPath.startsWith(`${union.schemaPath}/`)) return false;
  return meant < 0 || !error.schemaPath.startsWith(`${union.schemaPath}/${meant}/`);
}

function hasType(value: unknown, type: string | undefined): boolean {
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value);
  return typeof value === type;
}

function messageOf(error: ErrorObject): string {
  const schema = error.parentSchema as Schema;
  if (error.keyword === 'minItems') return 'the list is empty';
  const guess =
    error.keyword === 'enum' && typeof error.data === 'string' ? hint(error.data, schema.enum as string[]) : '';
  const found = schema.writeOnly === true ? '' : `, not ${shown(error.data)}`;
  return `must be ${schema.title ?? error.message ?? 'something else'}${found}${guess}`;
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'an object';
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}

/** ajv's JSON pointer as a path: a segment is an index exactly where the value is a list. */
function pathOf(error: ErrorObject, root: unknown): Path {
  const path: (string | number)[] = [];
  let value = root;
  for (const segment of error.instancePath.split('/').slice(1)) {
    const key = segment.replaceAll('~1', '/').replaceAll('~0', '~');
    path.push(Array.isArray(value) ? Number(key) : key);
    value = (value as Readonly<Record<string, unknown>> | undefined)?.[key];
  }
  return path;
}
