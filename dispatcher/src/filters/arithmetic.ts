import {
  type Budget,
  Double,
  double,
  FAILED,
  int,
  isInt,
  kindOf,
  MAX_INT,
  numeric,
  Uint,
  uint,
  type Value,
} from './values.js';

export type ArithmeticOperator = '+' | '-' | '*' | '/' | '%';

/** Steps that handling `length` characters, bytes or the like costs beyond the operation itself. */
export function lengthCost(length: number): number {
  return length >> 6;
}

/**
 * Integers stay exact and fail beyond 64 bits; with a double on either side the result is a double.
 * `+` also joins two strings, two bytes or two lists.
 */
export function arithmetic(operator: ArithmeticOperator, a: Value, b: Value, budget: Budget): Value {
  if (typeof a === 'number' && typeof b === 'number' && isInt(a) && isInt(b)) return smallInts(operator, a, b);
  const left = numeric(a);
  const right = numeric(b);
  if (left === undefined || right === undefined) return operator === '+' ? join(a, b, budget) : FAILED;
  if (kindOf(a) === 'double' || kindOf(b) === 'double') return doubles(operator, Number(left), Number(right));
  const unsigned = isUnsigned(a) && isUnsigned(b);
  return bigInts(operator, BigInt(left), BigInt(right), unsigned);
}

function isUnsigned(value: Value): boolean {
  return value instanceof Uint || (typeof value === 'bigint' && value > MAX_INT);
}

function smallInts(operator: ArithmeticOperator, a: number, b: number): Value {
  if ((operator === '/' || operator === '%') && b === 0) return FAILED;
  const result =
    operator === '+'
      ? a + b
      : operator === '-'
        ? a - b
        : operator === '*'
          ? a * b
          : operator === '/'
            ? (a - (a % b)) / b // dividing a multiple is exact, Math.trunc(a / b) is not
            : a % b;
  return Number.isSafeInteger(result) ? result + 0 : bigInts(operator, BigInt(a), BigInt(b), false);
}

function doubles(operator: ArithmeticOperator, a: number, b: number): Value {
  switch (operator) {
    case '+':
      return double(a + b);
    case '-':
      return double(a - b);
    case '*':
      return double(a * b);
    case '/':
      return double(a / b);
    case '%':
      return FAILED;
  }
}

function bigInts(operator: ArithmeticOperator, a: bigint, b: bigint, unsigned: boolean): Value {
  let result: bigint;
  switch (operator) {
    case '+':
      result = a + b;
      break;
    case '-':
      result = a - b;
      break;
    case '*':
      result = a * b;
      break;
    default:
      if (b === 0n) return FAILED;
      result = operator === '/' ? a / b : a % b;
  }
  // int and uint mixed: whichever of the two can hold the result
  return unsigned || result > MAX_INT ? uint(result) : int(result);
}

function join(a: Value, b: Value, budget: Budget): Value {
  if (typeof a === 'string' && typeof b === 'string') {
    budget.spend(lengthCost(a.length + b.length));
    return a + b;
  }
  if (Array.isArray(a) && Array.isArray(b)) {
    budget.spend(a.length + b.length);
    return [...a, ...b];
  }
  if (a instanceof Uint8Array && b instanceof Uint8Array) {
    budget.spend(lengthCost(a.length + b.length));
    const both = new Uint8Array(a.length + b.length);
    both.set(a, 0);
    both.set(b, a.length);
    return both;
  }
  return FAILED;
}

export function negate(value: Value): Value {
  if (typeof value === 'number') return isInt(value) ? 0 - value : double(-value);
  if (typeof value === 'bigint') return value > MAX_INT ? FAILED : int(-value);
  return value instanceof Double ? double(-value.value) : FAILED;
}
