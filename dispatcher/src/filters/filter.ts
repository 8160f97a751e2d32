import type { ASTNode } from '@marcbachmann/cel-js';
import { TrunklineError } from '@trunkline/proto';
import { chain, compile, type Evaluate, every, type FilterInput, Frame, NO_INPUT } from './compile.js';
import { children, parseFilter, Refusal } from './environment.js';

export type { FilterInput } from './compile.js';

/** Most characters of a filter, unless configured. */
export const DEFAULT_MAX_FILTER_LENGTH = 4096;
/** Most steps of one evaluation: about one per operator or element looked at. Beyond it the message does not match. */
export const MAX_FILTER_STEPS = 200_000;

/** The conjunct that an index answers: the message's tag or key is exactly `value`. */
export interface IndexedEquality {
  readonly field: 'tag' | 'key';
  readonly value: string;
}

export type Predicate = (input: FilterInput) => boolean;

/** A compiled filter; immutable. Filters of one compiler with the same text are one object. */
export class Filter {
  /** The identity: without the space around it, '' for no filter at all. */
  readonly text: string;
  readonly usesBody: boolean;
  /** A conjunct `key == "X"` or, when there is none, `tag == "X"`. */
  readonly index: IndexedEquality | undefined;
  /** What remains to be asked once `index` (if any) holds; undefined: nothing. Never throws. */
  readonly residual: Predicate | undefined;

  /** @internal Made by FilterCompiler. */
  constructor(
    text: string,
    usesBody: boolean,
    index: IndexedEquality | undefined,
    rest: Evaluate | undefined,
    onError: (text: string) => void,
  ) {
    this.text = text;
    this.usesBody = usesBody;
    this.index = index;
    this.residual = rest === undefined ? undefined : predicate(rest, () => onError(text));
    Object.freeze(this);
  }

  /** Never throws: an absent field, an error and a result that is not a bool all mean no match (the last two are counted). */
  matches(input: FilterInput): boolean {
    const { index, residual } = this;
    if (index !== undefined && input[index.field] !== index.value) return false;
    return residual === undefined || residual(input);
  }
}

function predicate(evaluate: Evaluate, onError: () => void): Predicate {
  const frame = new Frame();
  return (input) => {
    let result: unknown;
    frame.input = input;
    frame.left = MAX_FILTER_STEPS;
    try {
      result = evaluate(frame);
    } catch {
      // a spent budget, a body getter that throws, a string beyond what the engine holds
      frame.locals.fill(undefined);
      result = null;
    }
    frame.input = NO_INPUT; // keeps no message alive
    if (result === true) return true;
    if (result !== false && result !== undefined) onError();
    return false;
  };
}

export interface FilterCompilerOptions {
  /** Most characters of a filter; 4096 by default. */
  readonly maxLength?: number;
  /** Called once for each evaluation that failed: an operator without meaning for its operands, or a result that is no bool. */
  readonly onEvaluationError?: (text: string) => void;
}

/** Compiles filters, each distinct text once for as long as somebody holds it. */
export class FilterCompiler {
  readonly #maxLength: number;
  readonly #onError: (text: string) => void;
  readonly #held = new Map<string, { readonly filter: Filter; holders: number }>();

  constructor(options: FilterCompilerOptions = {}) {
    this.#maxLength = options.maxLength ?? DEFAULT_MAX_FILTER_LENGTH;
    this.#onError = options.onEvaluationError ?? (() => {});
  }

  /** Distinct filters that are held. */
  get size(): number {
    return this.#held.size;
  }

  /**
   * The filter with this text; give it back with `release`.
   * @throws TrunklineError FILTER_INVALID with `position`, 1-based in UTF-16 units of `text` as given
   */
  acquire(text: string): Filter {
    if (typeof text !== 'string') throw new TrunklineError('FILTER_INVALID', 'a filter must be a string');
    if (text.length > this.#maxLength) {
      const message = `the filter has ${text.length} characters, at most ${this.#maxLength}`;
      throw new TrunklineError('FILTER_INVALID', message, { position: this.#maxLength + 1 });
    }
    const trimmed = text.trim();
    const known = this.#held.get(trimmed);
    if (known !== undefined) {
      known.holders++;
      return known.filter;
    }
    try {
      const filter = compileFilter(trimmed, this.#onError);
      this.#held.set(trimmed, { filter, holders: 1 });
      return filter;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const position = text.length - text.trimStart().length + error.offset + 1;
      throw new TrunklineError('FILTER_INVALID', `filter, character ${position}: ${error.message}`, { position });
    }
  }

  /** @throws TrunklineError STATE_INVALID when nobody holds the filter: a release too many */
  release(filter: Filter): void {
    const known = this.#held.get(filter.text);
    if (known?.filter !== filter) throw new TrunklineError('STATE_INVALID', `filter is not held: ${filter.text}`);
    if (--known.holders === 0) this.#held.delete(filter.text);
  }
}

function compileFilter(text: string, onError: (text: string) => void): Filter {
  if (text === '') return new Filter('', false, undefined, undefined, onError);
  const root = parseFilter(text);
  const conjuncts = chain(root, '&&');
  const indexed =
    conjuncts.find((node) => equalityOf(node)?.field === 'key') ?? conjuncts.find((node) => equalityOf(node));
  const rest = conjuncts.filter((node) => node !== indexed).map((node) => compile(node, []));
  const evaluate = rest.length > 1 ? every(rest) : rest[0];
  return new Filter(text, mentionsBody(root), indexed && equalityOf(indexed), evaluate, onError);
}

/** `key == "X"` or `tag == "X"`, in either order. */
function equalityOf(node: ASTNode): IndexedEquality | undefined {
  if (node.op !== '==') return undefined;
  const [left, right] = node.args;
  const [name, value] = left.op === 'id' ? [left, right] : [right, left];
  if (name.op !== 'id' || value.op !== 'value' || typeof value.args !== 'string') return undefined;
  return name.args === 'tag' || name.args === 'key' ? { field: name.args, value: value.args } : undefined;
}

function mentionsBody(root: ASTNode): boolean {
  const open = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (node.op === 'id' && node.args === 'body') return true;
    open.push(...children(node));
  }
  return false;
}
