import { TrunklineError } from '@trunkline/proto';
import type { Handler } from './subscription.js';

/** One service code, or all from `from` to `to`. */
export type Codes = number | { readonly from: number; readonly to: number };

export interface Registration {
  readonly from: number;
  readonly to: number;
  readonly handler: Handler;
}

const LAST_CODE = 0xffffffff;

/** Which handler a service code has. Ranges may lie inside of each other: the narrowest one that holds the code wins. */
export class Registrations {
  private readonly single = new Map<number, Registration>();
  private ranges: Registration[] = [];

  /** @throws TrunklineError OPTION_INVALID, HANDLER_EXISTS: the same codes, or ranges of which neither holds the other */
  add(codes: Codes, handler: Handler): Registration {
    if (typeof handler !== 'function') throw new TrunklineError('OPTION_INVALID', 'a handler must be a function');
    const { from, to } = typeof codes === 'number' ? { from: codes, to: codes } : codes;
    if (!isCode(from) || !isCode(to) || from > to)
      throw new TrunklineError('OPTION_INVALID', `service codes are integers 1..${LAST_CODE}, not ${from} to ${to}`);
    const registration = { from, to, handler };
    if (from === to) {
      if (this.single.has(from)) throw new TrunklineError('HANDLER_EXISTS', `code ${from} has a handler already`);
      this.single.set(from, registration);
      return registration;
    }
    const conflict = this.ranges.find((other) => conflicts(registration, other));
    if (conflict !== undefined) {
      throw new TrunklineError('HANDLER_EXISTS', `codes ${conflict.from} to ${conflict.to} have a handler already`);
    }
    this.ranges.push(registration);
    this.ranges.sort((left, right) => left.to - left.from - (right.to - right.from));
    return registration;
  }

  /** Returns whether it was there. */
  remove(registration: Registration): boolean {
    if (registration.from === registration.to) {
      if (this.single.get(registration.from) !== registration) return false;
      return this.single.delete(registration.from);
    }
    const { length } = this.ranges;
    this.ranges = this.ranges.filter((other) => other !== registration);
    return this.ranges.length < length;
  }

  find(code: number): Registration | undefined {
    return this.single.get(code) ?? this.ranges.find(({ from, to }) => from <= code && code <= to);
  }

  all(): Registration[] {
    return [...this.single.values(), ...this.ranges];
  }
}

function isCode(code: unknown): boolean {
  return Number.isInteger(code) && (code as number) >= 1 && (code as number) <= LAST_CODE;
}

/** Neither apart nor one strictly inside of the other. */
function conflicts(left: Registration, right: Registration): boolean {
  if (left.to < right.from || right.to < left.from) return false;
  if (left.from === right.from && left.to === right.to) return true;
  const inside = left.from >= right.from && left.to <= right.to;
  const around = left.from <= right.from && left.to >= right.to;
  return !inside && !around;
}
