/**
 * Values of the filter language while it runs, and the rules of its numbers.
 *
 * A number has one form, the one attributes have: a safe integer other than -0 is an int, every other `number` a double.
 * Integers beyond ±(2^53-1) are bigints: an int up to 2^63-1, a uint above. So attributes and JSON need no conversion.
 * Only results the expression itself made need a box: `Double` for a double that looks like an integer (5.0), `Uint`
 * for a uint that looks like an int (5u).
 */

/** A double whose value looks like an integer. */
export class Double {
  constructor(readonly value: number) {}
}

/** An unsigned integer made by `5u` or `uint()`. */
export class Uint {
  constructor(readonly value: bigint) {}
}

/** What `type()` gives. */
export class TypeName {
  constructor(readonly name: string) {}
}

class Failed {
  readonly reason = 'the expression cannot be evaluated with these values';
}

/** The result of an operation that its operands do not have: the message does not match and the failure is counted. */
export const FAILED = new Failed();

/** `undefined` is an absent field: like FAILED it makes the filter not match, but it is no error and not counted. */
export type Value = unknown;

export const MIN_INT = -(2n ** 63n);
export const MAX_INT = 2n ** 63n - 1n;
export const MAX_UINT = 2n ** 64n - 1n;

export const typeNames: ReadonlyMap<string, TypeName> = new Map(
  ['int', 'uint', 'double', 'string', 'bool', 'bytes', 'list', 'map', 'null_type', 'type'].map((name) => [
    name,
    new TypeName(name),
  ]),
);

export type Kind = 'int' | 'uint' | 'double' | 'string' | 'bool' | 'bytes' | 'list' | 'map' | 'null_type' | 'type';

export function failed(value: Value): boolean {
  return value === undefined || value === FAILED;
}

/** The kind of a value, undefined for what no message can hold. */
export function kindOf(value: Value): Kind | undefined {
  switch (typeof value) {
    case 'number':
      return isInt(value) ? 'int' : 'double';
    case 'bigint':
      return value > MAX_INT ? 'uint' : 'int';
    case 'string':
      return 'string';
    case 'boolean':
      return 'bool';
    case 'object':
      if (value === null) return 'null_type';
      if (Array.isArray(value)) return 'list';
      if (value instanceof Uint8Array) return 'bytes';
      if (value instanceof Double) return 'double';
      if (value instanceof Uint) return 'uint';
      if (value instanceof TypeName) return 'type';
      return value === FAILED ? undefined : 'map';
    default:
      return undefined;
  }
}

export function isInt(value: number): boolean {
  return Number.isSafeInteger(value) && !Object.is(value, -0);
}

/** A number or bigint with the exact value, whichever form it has; undefined for what is not numeric. */
export function numeric(value: Value): number | bigint | undefined {
  if (typeof value === 'number' || typeof value === 'bigint') return value;
  if (value instanceof Double || value instanceof Uint) return value.value;
  return undefined;
}

export function double(value: number): number | Double {
  return isInt(value) ? new Double(value) : value;
}

/** An int in its one form; FAILED beyond 64 bits. */
export function int(value: bigint): Value {
  if (value < MIN_INT || value > MAX_INT) return FAILED;
  const near = Number(value);
  return Number.isSafeInteger(near) ? near : value;
}

export function uint(value: bigint): Value {
  if (value < 0n || value > MAX_UINT) return FAILED;
  return value > MAX_INT ? value : new Uint(value);
}

// --- equality and order

/** Numbers are equal by value whatever their types; values of different kinds are not equal; never fails. */
export function equal(a: Value, b: Value, budget: Budget): boolean {
  if (typeof a === 'string' || typeof b === 'string') {
    return a === b;
  }
  const left = numeric(a);
  const right = numeric(b);
  if (left !== undefined && right !== undefined) return sameNumber(left, right);
  if (left !== undefined || right !== undefined) return false;
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  const kind = kindOf(a);
  if (kind !== kindOf(b)) return false;
  if (kind === 'bytes') {
    budget.spend((a as Uint8Array).length >> 6);
    return compareBytes(a as Uint8Array, b as Uint8Array) === 0;
  }
  if (kind === 'list') return equalLists(a as Value[], b as Value[], budget);
  return kind === 'map' && equalMaps(a, b, budget);
}

function sameNumber(a: number | bigint, b: number | bigint): boolean {
  return typeof a === typeof b ? a === b : compareNumbers(a, b) === 0;
}

function equalLists(a: readonly Value[], b: readonly Value[], budget: Budget): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) {
    budget.spend(1);
    if (!equal(a[i], b[i], budget)) return false;
  }
  return true;
}

function equalMaps(a: object, b: object, budget: Budget): boolean {
  const keys = keysOf(a);
  if (keys.length !== keysOf(b).length) return false;
  for (const key of keys) {
    budget.spend(1);
    const other = lookUp(b, key);
    if (other === undefined || !equal(lookUp(a, key), other, budget)) return false;
  }
  return true;
}

/** Negative, 0 or positive; NaN when there is no order (a NaN); undefined when the two kinds have none. */
export function compare(a: Value, b: Value): number | undefined {
  if (typeof a === 'number' && typeof b === 'number') return a < b ? -1 : a > b ? 1 : a === b ? 0 : Number.NaN;
  if (typeof a === 'string') return typeof b === 'string' ? compareText(a, b) : undefined;
  if (typeof a === 'boolean') return typeof b === 'boolean' ? Number(a) - Number(b) : undefined;
  if (a instanceof Uint8Array) return b instanceof Uint8Array ? compareBytes(a, b) : undefined;
  const left = numeric(a);
  const right = numeric(b);
  return left === undefined || right === undefined ? undefined : compareNumbers(left, right);
}

/** JavaScript compares a bigint with a number by their exact values. */
function compareNumbers(a: number | bigint, b: number | bigint): number {
  return a < b ? -1 : a > b ? 1 : a >= b ? 0 : Number.NaN;
}

/** By code points. UTF-16 order differs: surrogates sort below U+E000..U+FFFF there. */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const left = a.charCodeAt(i);
    const right = b.charCodeAt(i);
    if (left !== right) return codePointOrder(left) - codePointOrder(right);
  }
  return a.length - b.length;
}

function codePointOrder(unit: number): number {
  return unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return a.length - b.length;
}

// --- lists and maps

/** Keys of a map: of an object its own ones, so nothing of a prototype is ever seen. */
export function keysOf(map: object): readonly Value[] {
  return map instanceof Map ? [...map.keys()] : Object.keys(map);
}

/** An element of a map or list; undefined (absent) when it has none or is neither. */
export function lookUp(container: Value, key: Value): Value {
  if (typeof container !== 'object' || container === null) return undefined;
  if (Array.isArray(container)) {
    const index = key instanceof Double || key instanceof Uint ? Number(key.value) : key;
    return typeof index === 'number' && index >= 0 && index < container.length ? container[index] : undefined;
  }
  if (kindOf(container) !== 'map') return undefined;
  if (container instanceof Map) return container.get(mapKey(key));
  return typeof key === 'string' && Object.hasOwn(container, key)
    ? (container as Record<string, Value>)[key]
    : undefined;
}

/** The key under which a map literal keeps `value`: equal numbers share one. */
export function mapKey(value: Value): Value {
  const number = numeric(value);
  if (number === undefined) return value;
  const near = Number(number);
  return near === number || (Number.isSafeInteger(near) && BigInt(near) === number) ? near : number;
}

/** How much work one evaluation may still do. */
export class Budget {
  left = 0;
  /** @throws BudgetSpent */
  spend(steps: number): void {
    this.left -= steps;
    if (this.left < 0) throw spent;
  }
}

class BudgetSpent {
  readonly reason = 'the evaluation does more work than a filter may';
}
const spent = new BudgetSpent();
