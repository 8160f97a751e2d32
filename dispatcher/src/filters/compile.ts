import type { ASTNode } from '@marcbachmann/cel-js';
import { UnsignedInt } from '@marcbachmann/cel-js/evaluator';
import type { Attributes } from '@trunkline/proto';
import { type ArithmeticOperator, arithmetic, lengthCost, negate } from './arithmetic.js';
import { compileCall, compileMethod } from './calls.js';
import { Refusal } from './environment.js';
import {
  Budget,
  compare,
  double,
  equal,
  FAILED,
  failed,
  int,
  keysOf,
  kindOf,
  lookUp,
  MAX_INT,
  MIN_INT,
  mapKey,
  numeric,
  typeNames,
  uint,
  type Value,
} from './values.js';

/** What a filter sees of a message. */
export interface FilterInput {
  readonly tag: string;
  readonly key: string;
  readonly attrs: Attributes;
  /** Parsed JSON body; undefined when it is not JSON. A getter may parse it when a filter first looks at it. */
  readonly body: unknown;
}

export const NO_INPUT: FilterInput = Object.freeze({ tag: '', key: '', attrs: Object.freeze({}), body: undefined });

/** One evaluation: the message, the variables of the macros around, and how much work is left. */
export class Frame extends Budget {
  input: FilterInput = NO_INPUT;
  readonly locals: Value[] = [];
}

/** undefined: an absent field. FAILED: an error. Never throws but for a spent budget. */
export type Evaluate = (frame: Frame) => Value;

/** The variables of the macros around a node: their name at their slot. */
export type Scope = readonly string[];

/** Closures for a checked tree. @throws Refusal */
export function compile(node: ASTNode, scope: Scope): Evaluate {
  switch (node.op) {
    case 'value':
      return constant(literal(node.args, node.pos, false));
    case 'id':
      return variable(node.args, node.pos, scope);
    case '.':
      return select(node.args[0], node.args[1], scope);
    case '[]':
      return binary(compile(node.args[0], scope), compile(node.args[1], scope), lookUp);
    case 'call':
      return compileCall(node.args[0], node.args[1], node.pos, scope);
    case 'rcall':
      return compileMethod(node.args[0], node.args[1], node.args[2], node.pos, scope);
    case 'list':
      return listOf(node.args, scope);
    case 'map':
      return mapOf(node.args, scope);
    case '?:':
      return choose(node.args, scope);
    case '&&':
      return every(chain(node, '&&').map((part) => compile(part, scope)));
    case '||':
      return some(chain(node, '||').map((part) => compile(part, scope)));
    case '!_':
      return unary(compile(node.args, scope), (value) => (typeof value === 'boolean' ? !value : FAILED));
    case '-_':
      if (node.args.op === 'value') return constant(literal(node.args.args, node.pos, true));
      return unary(compile(node.args, scope), negate);
    case '==':
    case '!=':
      return equality(node.args, node.op === '==', scope);
    case '<':
    case '<=':
    case '>':
    case '>=':
      return order(node.args, node.op, scope);
    case 'in':
      return membership(node.args, scope);
    case '+':
    case '-':
    case '*':
    case '/':
    case '%':
      return calculate(node.args, node.op, scope);
    default:
      throw new Refusal(`${node.op} is not available in filters`, node.pos);
  }
}

/** The operands of a chain of one logical operator, however it is bracketed. */
export function chain(root: ASTNode, operator: '&&' | '||'): ASTNode[] {
  const parts: ASTNode[] = [];
  const open = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (node.op === operator) open.push(node.args[1], node.args[0]);
    else parts.push(node);
  }
  return parts;
}

function constant(value: Value): Evaluate {
  return () => value;
}

function literal(value: unknown, pos: number, negated: boolean): Value {
  if (typeof value === 'bigint') {
    const exact = negated ? -value : value;
    if (exact < MIN_INT || exact > MAX_INT) throw new Refusal('the integer is beyond 64 bits', pos);
    return int(exact);
  }
  if (typeof value === 'number') return double(negated ? -value : value);
  if (negated) throw new Refusal('only an int or double has a negative', pos);
  return value instanceof UnsignedInt ? uint(value.valueOf()) : value;
}

function variable(name: string, pos: number, scope: Scope): Evaluate {
  const slot = scope.lastIndexOf(name);
  if (slot >= 0) return (frame) => frame.locals[slot];
  switch (name) {
    case 'tag':
      return (frame) => frame.input.tag;
    case 'key':
      return (frame) => frame.input.key;
    case 'attrs':
      return (frame) => frame.input.attrs;
    case 'body':
      return (frame) => frame.input.body;
  }
  const type = typeNames.get(name);
  if (type === undefined) throw new Refusal(`${name} is not available in filters`, pos);
  return constant(type);
}

function select(from: ASTNode, name: string, scope: Scope): Evaluate {
  if (from.op === 'id' && from.args === 'attrs' && !scope.includes('attrs')) {
    return ({ input: { attrs } }) => (Object.hasOwn(attrs, name) ? attrs[name] : undefined);
  }
  const container = compile(from, scope);
  return (frame) => {
    const value = container(frame);
    return failed(value) ? value : lookUp(value, name);
  };
}

export function unary(operand: Evaluate, apply: (value: Value, frame: Frame) => Value): Evaluate {
  return (frame) => {
    const value = operand(frame);
    return failed(value) ? value : apply(value, frame);
  };
}

export function binary(left: Evaluate, right: Evaluate, apply: (a: Value, b: Value, frame: Frame) => Value): Evaluate {
  return (frame) => {
    const a = left(frame);
    if (failed(a)) return a;
    const b = right(frame);
    return failed(b) ? b : apply(a, b, frame);
  };
}

function listOf(items: readonly ASTNode[], scope: Scope): Evaluate {
  const parts = items.map((item) => compile(item, scope));
  if (items.every(isLiteral)) return constant(parts.map((part) => part(new Frame())));
  return (frame) => {
    const list: Value[] = [];
    for (const part of parts) {
      const value = part(frame);
      if (failed(value)) return value;
      list.push(value);
    }
    return list;
  };
}

function isLiteral(node: ASTNode): boolean {
  return node.op === 'value' || (node.op === '-_' && node.args.op === 'value');
}

function mapOf(entries: readonly (readonly [ASTNode, ASTNode])[], scope: Scope): Evaluate {
  const parts = entries.map(([key, value]) => [compile(key, scope), compile(value, scope)] as const);
  return (frame) => {
    const map = new Map<Value, Value>();
    for (const [keyPart, valuePart] of parts) {
      const key = keyPart(frame);
      if (failed(key)) return key;
      const value = valuePart(frame);
      if (failed(value)) return value;
      if (typeof key !== 'string' && typeof key !== 'boolean' && numeric(key) === undefined) return FAILED;
      if (map.has(mapKey(key))) return FAILED;
      map.set(mapKey(key), value);
    }
    return map;
  };
}

function choose(nodes: readonly [ASTNode, ASTNode, ASTNode], scope: Scope): Evaluate {
  const [condition, yes, no] = nodes.map((node) => compile(node, scope)) as [Evaluate, Evaluate, Evaluate];
  return (frame) => {
    const value = condition(frame);
    if (value === true) return yes(frame);
    if (value === false) return no(frame);
    return value === undefined ? value : FAILED;
  };
}

/** Of two failures an error is told rather than an absent field. */
function worse(before: Value, now: Value): Value {
  return now === undefined && before !== FAILED ? undefined : FAILED;
}

/** `&&`: false beats every failure, as CEL has it, so the order of operands does not matter. */
export function every(parts: readonly Evaluate[]): Evaluate {
  return (frame) => {
    let result: Value = true;
    for (let i = 0; i < parts.length; i++) {
      const value = parts[i]!(frame);
      if (value === false) return false;
      if (value !== true) result = worse(result, value);
    }
    return result;
  };
}

/** `||`: true beats every failure. */
function some(parts: readonly Evaluate[]): Evaluate {
  return (frame) => {
    let result: Value = false;
    for (let i = 0; i < parts.length; i++) {
      const value = parts[i]!(frame);
      if (value === true) return true;
      if (value !== false) result = worse(result, value);
    }
    return result;
  };
}

function equality(nodes: readonly [ASTNode, ASTNode], positive: boolean, scope: Scope): Evaluate {
  const left = compile(nodes[0], scope);
  const right = compile(nodes[1], scope);
  const expected = isLiteral(nodes[1]) ? right(new Frame()) : undefined;
  if (typeof expected === 'string' || typeof expected === 'number') {
    return (frame) => {
      const value = left(frame);
      if (typeof value === typeof expected) return (value === expected) === positive;
      return failed(value) ? value : equal(value, expected, frame) === positive;
    };
  }
  return binary(left, right, (a, b, frame) => equal(a, b, frame) === positive);
}

type OrderOperator = '<' | '<=' | '>' | '>=';

const orders: Readonly<Record<OrderOperator, (order: number) => boolean>> = {
  '<': (order) => order < 0,
  '<=': (order) => order <= 0,
  '>': (order) => order > 0,
  '>=': (order) => order >= 0,
};
const numberOrders: Readonly<Record<OrderOperator, (a: number, b: number) => boolean>> = {
  '<': (a, b) => a < b,
  '<=': (a, b) => a <= b,
  '>': (a, b) => a > b,
  '>=': (a, b) => a >= b,
};

function order(nodes: readonly [ASTNode, ASTNode], operator: OrderOperator, scope: Scope): Evaluate {
  const holds = orders[operator];
  const numbers = numberOrders[operator];
  return binary(compile(nodes[0], scope), compile(nodes[1], scope), (a, b, frame) => {
    if (typeof a === 'number' && typeof b === 'number') return numbers(a, b);
    if (typeof a === 'string' || a instanceof Uint8Array) frame.spend(lengthCost(a.length));
    const order = compare(a, b);
    return order === undefined ? FAILED : holds(order);
  });
}

function calculate(nodes: readonly [ASTNode, ASTNode], operator: ArithmeticOperator, scope: Scope): Evaluate {
  return binary(compile(nodes[0], scope), compile(nodes[1], scope), (a, b, frame) => arithmetic(operator, a, b, frame));
}

function membership(nodes: readonly [ASTNode, ASTNode], scope: Scope): Evaluate {
  const element = compile(nodes[0], scope);
  const container = compile(nodes[1], scope);
  if (nodes[1].op === 'list' && nodes[1].args.every(isLiteral)) {
    const known = container(new Frame()) as readonly Value[];
    if (known.every((value) => typeof value === 'string')) {
      const texts = new Set(known);
      return unary(element, (value) => texts.has(value as string));
    }
  }
  return binary(element, container, isIn);
}

function isIn(element: Value, container: Value, frame: Frame): Value {
  if (Array.isArray(container)) {
    for (const item of container) {
      frame.spend(1);
      if (equal(element, item, frame)) return true;
    }
    return false;
  }
  return kindOf(container) === 'map' ? lookUp(container, element) !== undefined : FAILED;
}

/** What a macro goes through: the elements of a list, the keys of a map. */
export function iterable(value: Value): readonly Value[] | undefined {
  if (Array.isArray(value)) return value;
  return kindOf(value) === 'map' ? keysOf(value as object) : undefined;
}
