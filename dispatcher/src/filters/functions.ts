import { lengthCost } from './arithmetic.js';
import { type Budget, double, FAILED, int, keysOf, kindOf, numeric, typeNames, uint, type Value } from './values.js';

/** Functions of one argument: `size(x)`. They fail, they never throw. */
export const functions: Readonly<Record<string, (value: Value, budget: Budget) => Value>> = {
  size,
  dyn: (value) => value,
  type: (value) => typeNames.get(kindOf(value) ?? '') ?? FAILED,
  int: toInt,
  uint: toUint,
  double: toDouble,
  string: toText,
  bool: toBool,
  bytes: (value, budget) => {
    if (value instanceof Uint8Array) return value;
    if (typeof value !== 'string') return FAILED;
    budget.spend(lengthCost(value.length));
    return new TextEncoder().encode(value);
  },
};

/** Methods of a string with one string argument. */
export const textTests: Readonly<Record<string, (text: string, part: string) => boolean>> = {
  startsWith: (text, part) => text.startsWith(part),
  endsWith: (text, part) => text.endsWith(part),
  contains: (text, part) => text.includes(part),
};

/** Methods without an argument: `tag.size()`. */
export const methods: Readonly<Record<string, (value: Value, budget: Budget) => Value>> = {
  size,
  lowerAscii: (value, budget) => changeCase(value, budget, /[A-Z]+/g, (part) => part.toLowerCase()),
  upperAscii: (value, budget) => changeCase(value, budget, /[a-z]+/g, (part) => part.toUpperCase()),
};

/** Code points of a string, bytes, elements or entries. */
function size(value: Value, budget: Budget): Value {
  if (typeof value === 'string') {
    budget.spend(lengthCost(value.length));
    let count = value.length;
    for (let i = 1; i < value.length; i++) {
      if ((value.charCodeAt(i) & 0xfc00) === 0xdc00 && (value.charCodeAt(i - 1) & 0xfc00) === 0xd800) count--;
    }
    return count;
  }
  if (Array.isArray(value) || value instanceof Uint8Array) return value.length;
  if (kindOf(value) !== 'map') return FAILED;
  const length = keysOf(value as object).length;
  budget.spend(length);
  return length;
}

function changeCase(value: Value, budget: Budget, letters: RegExp, change: (part: string) => string): Value {
  if (typeof value !== 'string') return FAILED;
  budget.spend(lengthCost(value.length));
  return value.replace(letters, change);
}

function toInt(value: Value): Value {
  const number = numeric(value);
  if (typeof number === 'bigint') return int(number);
  if (typeof number === 'number') return Number.isFinite(number) ? int(BigInt(Math.trunc(number))) : FAILED;
  return typeof value === 'string' && /^[+-]?\d{1,19}$/.test(value) ? int(BigInt(value.replace('+', ''))) : FAILED;
}

function toUint(value: Value): Value {
  const number = numeric(value);
  if (typeof number === 'bigint') return uint(number);
  if (typeof number === 'number') return Number.isFinite(number) ? uint(BigInt(Math.trunc(number))) : FAILED;
  return typeof value === 'string' && /^\d{1,20}$/.test(value) ? uint(BigInt(value)) : FAILED;
}

function toDouble(value: Value): Value {
  const number = numeric(value);
  if (number !== undefined) return double(Number(number));
  if (typeof value !== 'string' || value.length > 400) return FAILED;
  if (/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(value)) return double(Number(value));
  const special = /^([+-]?)(inf|infinity|nan)$/i.exec(value);
  if (special === null) return FAILED;
  if (special[2]!.toLowerCase() === 'nan') return Number.NaN;
  return special[1] === '-' ? -Infinity : Infinity;
}

function toText(value: Value, budget: Budget): Value {
  if (typeof value === 'string') return value;
  const number = numeric(value);
  if (number !== undefined) {
    return number === Infinity ? '+Inf' : number === -Infinity ? '-Inf' : Object.is(number, -0) ? '-0' : String(number);
  }
  if (typeof value === 'boolean') return String(value);
  if (!(value instanceof Uint8Array)) return FAILED;
  budget.spend(lengthCost(value.length));
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(value);
  } catch {
    return FAILED;
  }
}

function toBool(value: Value): Value {
  if (typeof value === 'boolean') return value;
  if (typeof value !== 'string') return FAILED;
  if (/^(1|t|true|TRUE|True)$/.test(value)) return true;
  return /^(0|f|false|FALSE|False)$/.test(value) ? false : FAILED;
}
