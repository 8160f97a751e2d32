import type { ASTNode } from '@marcbachmann/cel-js';
import { lengthCost } from './arithmetic.js';
import { binary, compile, type Evaluate, type Frame, iterable, type Scope, unary } from './compile.js';
import { countNodes, Refusal } from './environment.js';
import { functions, methods, textTests } from './functions.js';
import { Pattern } from './pattern.js';
import { PatternError } from './pattern-parser.js';
import { FAILED, failed, type Value } from './values.js';

/** Macros inside macros inside … */
export const MAX_NESTED_MACROS = 2;

const present = (value: Value) => (value === FAILED ? FAILED : value !== undefined);

/** `size(x)`, `has(x.y)`. */
export function compileCall(name: string, args: readonly ASTNode[], pos: number, scope: Scope): Evaluate {
  if ((name === 'has' || name === 'exists') && args.length === 1) {
    const value = compile(args[0]!, scope);
    return (frame) => present(value(frame));
  }
  const apply = Object.hasOwn(functions, name) && args.length === 1 ? functions[name] : undefined;
  if (apply === undefined) throw new Refusal(`${name}() is not available in filters`, pos);
  return unary(compile(args[0]!, scope), apply);
}

/** `x.size()`, `x.startsWith(y)`, `x.all(y, …)`. */
export function compileMethod(
  name: string,
  receiver: ASTNode,
  args: readonly ASTNode[],
  pos: number,
  scope: Scope,
): Evaluate {
  const [first, second, third] = args;
  if (args.length === 0 && Object.hasOwn(methods, name)) return unary(compile(receiver, scope), methods[name]!);
  if (args.length === 1) {
    if (name === 'matches') return matches(compile(receiver, scope), first!);
    const test = Object.hasOwn(textTests, name) ? textTests[name] : undefined;
    if (test !== undefined) return textTest(compile(receiver, scope), compile(first!, scope), test);
  }
  if (first?.op === 'id' && second !== undefined) {
    const inner = scope.length >= MAX_NESTED_MACROS ? undefined : [...scope, first.args];
    const macro = third === undefined ? macros[name] : name === 'map' ? filterAndMap : undefined;
    if (macro !== undefined && Object.hasOwn(macros, name)) {
      if (inner === undefined) throw new Refusal(`macros may be nested ${MAX_NESTED_MACROS} deep`, pos);
      const parts = args.slice(1).map((arg) => compile(arg, inner));
      const cost = args.slice(1).reduce((sum, arg) => sum + countNodes(arg), 1);
      return comprehension(compile(receiver, scope), scope.length, cost, macro(parts[0]!, parts[1]));
    }
  }
  throw new Refusal(`.${name}() is not available in filters`, pos);
}

function matches(text: Evaluate, argument: ASTNode): Evaluate {
  if (argument.op !== 'value' || typeof argument.args !== 'string') {
    throw new Refusal('matches() needs its pattern as a string literal', argument.pos);
  }
  let pattern: Pattern;
  try {
    pattern = new Pattern(argument.args);
  } catch (error) {
    if (error instanceof PatternError)
      throw new Refusal(`pattern: ${error.message}`, argument.start + 1 + error.offset);
    throw error;
  }
  return unary(text, (value, frame) => {
    if (typeof value !== 'string') return FAILED;
    // the worst case: every step of the pattern looked at for every character
    frame.spend(Math.floor((value.length * pattern.size) / 64));
    return pattern.test(value);
  });
}

function textTest(text: Evaluate, part: Evaluate, test: (text: string, part: string) => boolean): Evaluate {
  return binary(text, part, (a, b, frame) => {
    if (typeof a !== 'string' || typeof b !== 'string') return FAILED;
    // searching may compare every character of one with every one of the other
    frame.spend(Math.floor((a.length * b.length) / 1024) + lengthCost(a.length));
    return test(a, b);
  });
}

/** What a macro makes of the elements, one by one; it ends early by giving a result. */
interface Turns {
  start(): Value;
  /** Gives the new state; `stop` ends with it. */
  turn(state: Value, element: Value, frame: Frame): Value;
  stop(state: Value): boolean;
  end(state: Value): Value;
}

function comprehension(range: Evaluate, slot: number, cost: number, turns: Turns): Evaluate {
  return (frame) => {
    const value = range(frame);
    if (failed(value)) return value;
    const elements = iterable(value);
    if (elements === undefined) return FAILED;
    let state = turns.start();
    for (const element of elements) {
      frame.spend(cost);
      frame.locals[slot] = element;
      state = turns.turn(state, element, frame);
      if (turns.stop(state)) break;
    }
    frame.locals[slot] = undefined;
    return turns.end(state);
  };
}

const same = (state: Value) => state;

/** A failure is kept until a turn decides. */
function quantifier(start: boolean): (test: Evaluate) => Turns {
  return (test) => ({
    start: () => start,
    turn: (state, _element, frame) => {
      const value = test(frame);
      if (typeof value === 'boolean') return value === start ? state : value;
      return value === undefined && state !== FAILED ? undefined : FAILED;
    },
    stop: (state) => state === !start,
    end: same,
  });
}

function exactlyOne(test: Evaluate): Turns {
  return {
    start: () => 0,
    turn: (state, _element, frame) => {
      const value = test(frame);
      if (typeof value === 'boolean') return value ? (state as number) + 1 : state;
      return value === undefined ? undefined : FAILED;
    },
    stop: failed,
    end: (state) => (failed(state) ? state : state === 1),
  };
}

function collect(turn: (list: Value[], element: Value, frame: Frame) => Value): Turns {
  return {
    start: () => [],
    turn: (state, element, frame) => turn(state as Value[], element, frame),
    stop: failed,
    end: same,
  };
}

function filterElements(test: Evaluate): Turns {
  return collect((list, element, frame) => {
    const value = test(frame);
    if (value === true) list.push(element);
    return typeof value === 'boolean' ? list : value === undefined ? undefined : FAILED;
  });
}

function mapElements(transform: Evaluate): Turns {
  return collect((list, _element, frame) => {
    const value = transform(frame);
    if (failed(value)) return value;
    list.push(value);
    return list;
  });
}

function filterAndMap(test: Evaluate, transform: Evaluate | undefined): Turns {
  const mapped = mapElements(transform!);
  return collect((list, element, frame) => {
    const value = test(frame);
    if (value === true) return mapped.turn(list, element, frame);
    return value === false ? list : value === undefined ? undefined : FAILED;
  });
}

const macros: Readonly<Record<string, (part: Evaluate, transform: Evaluate | undefined) => Turns>> = {
  all: quantifier(true),
  exists: quantifier(false),
  exists_one: exactlyOne,
  filter: filterElements,
  map: mapElements,
};
