import {
  type Assertion,
  NEWLINE_RANGE,
  PatternError,
  type PatternNode,
  parsePattern,
  type Ranges,
  WORD,
} from './pattern-parser.js';

/** Most steps a compiled pattern may have; counted repetitions are written out. */
export const MAX_PROGRAM = 1000;
/** Bounds the memory of the states one pattern remembers: 4 bytes each. */
const MAX_CELLS = 16384;
const MAX_STATES = 256;
/** Bounds the table of sets by classes: 1 byte each. */
const MAX_TABLE = 65536;

/** What stands on one side of a position, as far as assertions care. */
const Side = { edge: 0, newline: 1, word: 2, other: 3 } as const;
type Side = (typeof Side)[keyof typeof Side];

const CHARACTER = 0;
const SPLIT = 1;
const ASSERT = 2;
const MATCH = 3;

const UNKNOWN = -1;
const ACCEPT = -2;

/**
 * A regular expression without captures, found anywhere in a text in time linear in its length, whatever the pattern:
 * a set of program positions moves over the text (Thompson), and the sets seen are remembered as states of an automaton.
 * When no more states may be remembered, the sets are computed each time: slower by the size of the program, no more.
 */
export class Pattern {
  readonly size: number;
  readonly #kinds: number[] = [];
  readonly #first: number[] = [];
  readonly #second: number[] = [];
  readonly #entry: number;
  readonly #assertions: Assertion[] = [];
  readonly #sets: Ranges[] = [];
  readonly #setNumbers = new Map<string, number>();
  /** Where a new class of code points begins: all code points of a class behave alike in this pattern. */
  readonly #bounds: number[];
  readonly #asciiClass = new Uint16Array(128);
  readonly #members: Uint8Array[];
  readonly #sideOfClass: Side[];

  readonly #states: { readonly positions: readonly number[]; readonly side: Side; readonly next: Int32Array }[] = [];
  readonly #stateByKey = new Map<string, number>();
  readonly #maxStates: number;

  readonly #mark: Uint32Array;
  #generation = 0;
  readonly #stack: number[] = [];

  /** @throws PatternError */
  constructor(pattern: string) {
    const tree = parsePattern(pattern);
    this.#entry = this.#emit(tree, this.#push(MATCH, 0, 0));
    this.size = this.#kinds.length;
    this.#mark = new Uint32Array(this.size);
    const sets = this.#assertions.length > 0 ? [...this.#sets, WORD, NEWLINE_RANGE] : this.#sets;
    const bounds = new Set([0]);
    for (const set of sets) for (let i = 0; i < set.length; i += 2) bounds.add(set[i]!).add(set[i + 1]! + 1);
    this.#bounds = [...bounds].sort((a, b) => a - b);
    if (this.#sets.length * this.#bounds.length > MAX_TABLE) {
      throw new PatternError('the pattern is too large: too many different characters', 0);
    }
    for (let code = 0; code < 128; code++) this.#asciiClass[code] = this.#findClass(code);
    this.#members = this.#sets.map((set) => Uint8Array.from(this.#bounds, (code) => (contains(set, code) ? 1 : 0)));
    this.#sideOfClass = this.#bounds.map((code) => this.#sideOf(code));
    this.#maxStates = Math.max(2, Math.min(MAX_STATES, Math.floor(MAX_CELLS / (this.#bounds.length + 1))));
    this.#state([this.#entry], this.#assertions.length > 0 ? Side.edge : Side.other);
  }

  /** Whether the pattern is found in `text`. */
  test(text: string): boolean {
    const end = this.#bounds.length;
    let state = 0;
    let at = 0;
    for (;;) {
      let kind = end;
      let width = 1;
      if (at < text.length) {
        const code = text.charCodeAt(at);
        if (code < 128) kind = this.#asciiClass[code]!;
        else {
          const point = text.codePointAt(at)!;
          if (point > 0xffff) width = 2;
          kind = this.#findClass(point);
        }
      }
      const here = this.#states[state]!;
      let next = here.next[kind]!;
      if (next === UNKNOWN) {
        const reached = this.#step(here.positions, here.side, kind);
        if (reached === ACCEPT) next = ACCEPT;
        else if (kind === end) next = state;
        else {
          next = this.#state(reached, this.#sideOfClass[kind]!);
          if (next === UNKNOWN) return this.#testOn(text, at + width, reached, this.#sideOfClass[kind]!);
        }
        here.next[kind] = next;
      }
      if (next === ACCEPT) return true;
      if (kind === end) return false;
      state = next;
      at += width;
    }
  }

  /** Goes on without remembering states. */
  #testOn(text: string, from: number, positions: readonly number[], side: Side): boolean {
    let at = from;
    let here = positions;
    let before = side;
    while (at < text.length) {
      const point = text.codePointAt(at)!;
      const kind = this.#findClass(point);
      const next = this.#step(here, before, kind);
      if (next === ACCEPT) return true;
      here = next;
      before = this.#sideOfClass[kind]!;
      at += point > 0xffff ? 2 : 1;
    }
    return this.#step(here, before, this.#bounds.length) === ACCEPT;
  }

  /** The number of the state with these positions, a new one where needed, UNKNOWN when there may be no more. */
  #state(positions: readonly number[], side: Side): number {
    const key = `${side}:${positions.join()}`;
    const known = this.#stateByKey.get(key);
    if (known !== undefined) return known;
    if (this.#states.length >= this.#maxStates) return UNKNOWN;
    const number = this.#states.length;
    this.#states.push({ positions, side, next: new Int32Array(this.#bounds.length + 1).fill(UNKNOWN) });
    this.#stateByKey.set(key, number);
    return number;
  }

  /** Over one character of class `kind` (or the end): the positions reached, with a new attempt at the entry. */
  #step(positions: readonly number[], before: Side, kind: number): number[] | typeof ACCEPT {
    const after = this.#sideOfClass[kind] ?? Side.edge;
    const reached: number[] = [];
    const generation = this.#nextGeneration();
    const stack = this.#stack;
    stack.length = 0;
    for (const position of positions) stack.push(position);
    while (stack.length > 0) {
      const position = stack.pop()!;
      if (this.#mark[position] === generation) continue;
      this.#mark[position] = generation;
      switch (this.#kinds[position]) {
        case MATCH:
          return ACCEPT;
        case SPLIT:
          stack.push(this.#first[position]!, this.#second[position]!);
          break;
        case ASSERT:
          if (holds(this.#assertions[this.#first[position]!]!, before, after)) stack.push(this.#second[position]!);
          break;
        default:
          if (this.#members[this.#first[position]!]![kind] === 1) reached.push(this.#second[position]!);
      }
    }
    reached.push(this.#entry);
    return this.#unique(reached);
  }

  #unique(positions: number[]): number[] {
    const generation = this.#nextGeneration();
    let count = 0;
    for (const position of positions) {
      if (this.#mark[position] === generation) continue;
      this.#mark[position] = generation;
      positions[count++] = position;
    }
    positions.length = count;
    return positions;
  }

  #nextGeneration(): number {
    if (this.#generation === 0xffffffff) {
      this.#generation = 0;
      this.#mark.fill(0);
    }
    return ++this.#generation;
  }

  #findClass(code: number): number {
    let low = 0;
    let high = this.#bounds.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#bounds[middle]! <= code) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #sideOf(code: number): Side {
    if (this.#assertions.length === 0) return Side.other;
    return code === NEWLINE_RANGE[0] ? Side.newline : contains(WORD, code) ? Side.word : Side.other;
  }

  // --- compiling: each node is written before what follows it, so it knows where to go on

  #push(kind: number, first: number, second: number): number {
    if (this.#kinds.length >= MAX_PROGRAM) {
      throw new PatternError(`the pattern is too large: more than ${MAX_PROGRAM} steps with its repetitions`, 0);
    }
    this.#first.push(first);
    this.#second.push(second);
    return this.#kinds.push(kind) - 1;
  }

  #emit(node: PatternNode, next: number): number {
    switch (node.kind) {
      case 'set':
        return this.#push(CHARACTER, this.#setNumber(node.ranges), next);
      case 'assert':
        return this.#push(ASSERT, this.#assertions.push(node.assertion) - 1, next);
      case 'sequence':
        return node.items.reduceRight((after, item) => this.#emit(item, after), next);
      case 'either':
        return node.items
          .map((item) => this.#emit(item, next))
          .reduceRight((rest, entry) => this.#push(SPLIT, entry, rest));
      case 'repeat':
        return this.#emitRepeat(node.item, node.least, node.most, next);
    }
  }

  #setNumber(ranges: Ranges): number {
    const key = ranges.join();
    const known = this.#setNumbers.get(key);
    if (known !== undefined) return known;
    const number = this.#sets.push(ranges) - 1;
    this.#setNumbers.set(key, number);
    return number;
  }

  #emitRepeat(item: PatternNode, least: number, most: number, next: number): number {
    let entry = next;
    if (most === Infinity) {
      entry = this.#push(SPLIT, 0, next);
      this.#first[entry] = this.#emit(item, entry);
    } else {
      for (let i = least; i < most; i++) {
        const once = this.#emit(item, entry);
        if (once === entry) return next; // the item is empty: repeating it adds nothing
        entry = this.#push(SPLIT, once, next);
      }
    }
    for (let i = 0; i < least; i++) {
      const once = this.#emit(item, entry);
      if (once === entry) break;
      entry = once;
    }
    return entry;
  }
}

function contains(ranges: Ranges, code: number): boolean {
  for (let i = 0; i < ranges.length; i += 2) if (code >= ranges[i]! && code <= ranges[i + 1]!) return true;
  return false;
}

function holds(assertion: Assertion, before: Side, after: Side): boolean {
  switch (assertion) {
    case 'textStart':
      return before === Side.edge;
    case 'textEnd':
      return after === Side.edge;
    case 'lineStart':
      return before === Side.edge || before === Side.newline;
    case 'lineEnd':
      return after === Side.edge || after === Side.newline;
    case 'wordBoundary':
      return (before === Side.word) !== (after === Side.word);
    case 'noWordBoundary':
      return (before === Side.word) === (after === Side.word);
  }
}
