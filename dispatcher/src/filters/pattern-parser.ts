/** Sorted, disjoint code point ranges: [first, last, first, last, …]. */
export type Ranges = readonly number[];

export type Assertion = 'textStart' | 'textEnd' | 'lineStart' | 'lineEnd' | 'wordBoundary' | 'noWordBoundary';

export type PatternNode =
  | { readonly kind: 'set'; readonly ranges: Ranges }
  | { readonly kind: 'assert'; readonly assertion: Assertion }
  | { readonly kind: 'sequence' | 'either'; readonly items: readonly PatternNode[] }
  | { readonly kind: 'repeat'; readonly item: PatternNode; readonly least: number; readonly most: number };

export class PatternError extends Error {
  constructor(
    reason: string,
    /** 0-based, in UTF-16 units of the pattern. */
    readonly offset: number,
  ) {
    super(reason);
  }
}

export const MAX_PATTERN = 1000;
const MAX_REPEAT = 1000;
const MAX_GROUPS = 100;
const LAST_CODE_POINT = 0x10ffff;
const NEWLINE = 10;

export const WORD: Ranges = [48, 57, 65, 90, 95, 95, 97, 122];
const DIGIT: Ranges = [48, 57];
const SPACE: Ranges = [9, 10, 12, 13, 32, 32];
const POSIX: Readonly<Record<string, Ranges>> = {
  alnum: [48, 57, 65, 90, 97, 122],
  alpha: [65, 90, 97, 122],
  ascii: [0, 127],
  blank: [9, 9, 32, 32],
  cntrl: [0, 31, 127, 127],
  digit: DIGIT,
  graph: [33, 126],
  lower: [97, 122],
  print: [32, 126],
  punct: [33, 47, 58, 64, 91, 96, 123, 126],
  space: [9, 13, 32, 32],
  upper: [65, 90],
  word: WORD,
  xdigit: [48, 57, 65, 70, 97, 102],
};
const PERL: Readonly<Record<string, Ranges>> = {
  d: DIGIT,
  D: invert(DIGIT),
  w: WORD,
  W: invert(WORD),
  s: SPACE,
  S: invert(SPACE),
};
const CONTROL: Readonly<Record<string, number>> = { a: 7, f: 12, n: 10, r: 13, t: 9, v: 11 };
const ASSERTIONS: Readonly<Record<string, Assertion>> = {
  A: 'textStart',
  z: 'textEnd',
  b: 'wordBoundary',
  B: 'noWordBoundary',
};
const ANY: Ranges = [0, LAST_CODE_POINT];
const ANY_BUT_NEWLINE: Ranges = [0, 9, 11, LAST_CODE_POINT];

/** @throws PatternError */
export function parsePattern(pattern: string): PatternNode {
  if (pattern.length > MAX_PATTERN) {
    throw new PatternError(`the pattern is longer than ${MAX_PATTERN} characters`, MAX_PATTERN);
  }
  return new Parser(pattern).parse();
}

interface Flags {
  readonly ignoreCase: boolean;
  readonly multiline: boolean;
  readonly dotAll: boolean;
}

/** The part of RE2's syntax that filters have. */
class Parser {
  #at = 0;
  #groups = 0;
  #flags: Flags = { ignoreCase: false, multiline: false, dotAll: false };
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  parse(): PatternNode {
    const node = this.#either();
    if (this.#at < this.#text.length) throw this.#error('unmatched )');
    return node;
  }

  #error(reason: string, offset = this.#at): PatternError {
    return new PatternError(reason, offset);
  }

  #peek(): string {
    return this.#text.charAt(this.#at);
  }

  #take(expected: string): boolean {
    if (!this.#text.startsWith(expected, this.#at)) return false;
    this.#at += expected.length;
    return true;
  }

  #codePoint(): number {
    const value = this.#text.codePointAt(this.#at)!;
    this.#at += value > 0xffff ? 2 : 1;
    return value;
  }

  #either(): PatternNode {
    const items = [this.#sequence()];
    while (this.#take('|')) items.push(this.#sequence());
    return items.length === 1 ? items[0]! : { kind: 'either', items };
  }

  #sequence(): PatternNode {
    const items: PatternNode[] = [];
    while (this.#at < this.#text.length && this.#peek() !== '|' && this.#peek() !== ')') {
      const start = this.#at;
      const item = this.#atom();
      if (item !== undefined) items.push(this.#quantified(item, start));
    }
    return { kind: 'sequence', items };
  }

  #quantified(item: PatternNode, start: number): PatternNode {
    const range = this.#quantifier();
    if (range === undefined) return item;
    this.#take('?'); // lazy and greedy find the same texts
    const next = this.#at;
    if ('*+?'.includes(this.#peek() || ' ') || this.#quantifier() !== undefined) {
      throw this.#error('a repetition cannot be repeated without a group', next);
    }
    if (range.least > range.most) throw this.#error('the repetition has its bounds in the wrong order', start);
    return { kind: 'repeat', item, ...range };
  }

  #quantifier(): { least: number; most: number } | undefined {
    if (this.#take('*')) return { least: 0, most: Infinity };
    if (this.#take('+')) return { least: 1, most: Infinity };
    if (this.#take('?')) return { least: 0, most: 1 };
    const braces = /^\{(\d+)(,?)(\d*)\}/.exec(this.#text.slice(this.#at, this.#at + 20));
    if (braces === null) return undefined;
    const [all, first, comma, last] = braces as unknown as [string, string, string, string];
    if (comma === '' && last !== '') return undefined;
    const least = Number(first);
    const most = comma === '' ? least : last === '' ? Infinity : Number(last);
    if (least > MAX_REPEAT || (most !== Infinity && most > MAX_REPEAT)) {
      throw this.#error(`a repetition may count to ${MAX_REPEAT}`);
    }
    this.#at += all.length;
    return { least, most };
  }

  #atom(): PatternNode | undefined {
    const start = this.#at;
    switch (this.#peek()) {
      case '(':
        return this.#group();
      case '[':
        return this.#set(this.#bracketed());
      case '.':
        this.#at++;
        return { kind: 'set', ranges: this.#flags.dotAll ? ANY : ANY_BUT_NEWLINE };
      case '^':
        this.#at++;
        return { kind: 'assert', assertion: this.#flags.multiline ? 'lineStart' : 'textStart' };
      case '$':
        this.#at++;
        return { kind: 'assert', assertion: this.#flags.multiline ? 'lineEnd' : 'textEnd' };
      case '*':
      case '+':
      case '?':
        throw this.#error('nothing to repeat', start);
      case '\\': {
        const assertion = ASSERTIONS[this.#text.charAt(start + 1)];
        if (assertion !== undefined) {
          this.#at += 2;
          return { kind: 'assert', assertion };
        }
        return this.#set(this.#escape());
      }
      default: {
        const value = this.#codePoint();
        return this.#set([value, value]);
      }
    }
  }

  #set(ranges: Ranges): PatternNode {
    return { kind: 'set', ranges: this.#flags.ignoreCase ? foldCase(ranges) : ranges };
  }

  #group(): PatternNode | undefined {
    const start = this.#at++;
    const outer = this.#flags;
    if (this.#take('?')) {
      if (/^(<?[=!])/.test(this.#text.slice(this.#at, this.#at + 2))) {
        throw this.#error('lookaround is not available', start);
      }
      const name = /^P?<[A-Za-z_]\w*>/.exec(this.#text.slice(this.#at));
      if (name !== null) this.#at += name[0].length;
      else if (this.#readFlags(start)) return undefined;
    }
    if (++this.#groups > MAX_GROUPS) throw this.#error(`the pattern has more than ${MAX_GROUPS} groups`, start);
    const node = this.#either();
    if (!this.#take(')')) throw this.#error('the group is not closed', start);
    this.#flags = outer;
    return node;
  }

  /** `(?i)` sets flags for the rest of the group around it (true), `(?i:…)` begins a group of its own (false). */
  #readFlags(start: number): boolean {
    const found = /^([ims]*)(?:-([ims]+))?([:)])/.exec(this.#text.slice(this.#at));
    if (found === null || found[0] === ')') throw this.#error('the group has an unknown kind', start);
    const [all, on, off = '', end] = found as unknown as [string, string, string | undefined, string];
    const flag = (letter: string, before: boolean) => (off.includes(letter) ? false : on.includes(letter) || before);
    const { ignoreCase, multiline, dotAll } = this.#flags;
    this.#flags = { ignoreCase: flag('i', ignoreCase), multiline: flag('m', multiline), dotAll: flag('s', dotAll) };
    this.#at += all.length;
    return end === ')';
  }

  #escape(): Ranges {
    const start = this.#at++;
    if (this.#at >= this.#text.length) throw this.#error('a lone \\ at the end', start);
    const letter = this.#peek();
    if (/[1-9]/.test(letter)) throw this.#error('backreferences are not available', start);
    const perl = PERL[letter];
    const control = CONTROL[letter];
    if (perl !== undefined || control !== undefined) {
      this.#at++;
      return perl ?? [control!, control!];
    }
    if (letter === 'x') {
      const hex = /^x(?:([0-9a-fA-F]{2})|\{([0-9a-fA-F]{1,6})\})/.exec(this.#text.slice(this.#at, this.#at + 9));
      const value = Number.parseInt(hex?.[1] ?? hex?.[2] ?? '', 16);
      if (hex === null || value > LAST_CODE_POINT) throw this.#error('\\x needs two digits or {…}', start);
      this.#at += hex[0].length;
      return [value, value];
    }
    if (/[0-9A-Za-z]/.test(letter)) throw this.#error(`\\${letter} is not available`, start);
    const value = this.#codePoint();
    return [value, value];
  }

  #bracketed(): Ranges {
    const start = this.#at++;
    const negated = this.#take('^');
    const ranges: number[] = [];
    for (let first = true; first || this.#peek() !== ']'; first = false) {
      if (this.#at >= this.#text.length) throw this.#error('the set is not closed', start);
      ranges.push(...this.#setItem());
    }
    this.#at++;
    const all = normalize(this.#flags.ignoreCase ? foldCase(ranges) : ranges);
    return negated ? invert(all) : all;
  }

  #setItem(): Ranges {
    const start = this.#at;
    const posix = /^\[:(\^?)(\w+):\]/.exec(this.#text.slice(this.#at, this.#at + 12));
    if (posix !== null) {
      const known = Object.hasOwn(POSIX, posix[2]!) ? POSIX[posix[2]!] : undefined;
      if (known === undefined) throw this.#error(`there is no set ${posix[0]}`, start);
      this.#at += posix[0].length;
      return posix[1] === '' ? known : invert(known);
    }
    const low = this.#setCharacter();
    if (this.#peek() !== '-' || this.#text.charAt(this.#at + 1) === ']' || this.#at + 1 >= this.#text.length)
      return low;
    this.#at++;
    const high = this.#setCharacter();
    if (low.length !== 2 || low[0] !== low[1] || high.length !== 2 || high[0] !== high[1] || low[0]! > high[0]!) {
      throw this.#error('the range is wrong', start);
    }
    return [low[0]!, high[0]!];
  }

  #setCharacter(): Ranges {
    if (this.#peek() === '\\') return this.#escape();
    const value = this.#codePoint();
    return [value, value];
  }
}

/** The same ranges with both cases of each ASCII letter. */
function foldCase(ranges: Ranges): Ranges {
  const folded = [...ranges];
  for (let i = 0; i < ranges.length; i += 2) {
    for (const [from, to, shift] of [
      [65, 90, 32],
      [97, 122, -32],
    ] as const) {
      const low = Math.max(ranges[i]!, from);
      const high = Math.min(ranges[i + 1]!, to);
      if (low <= high) folded.push(low + shift, high + shift);
    }
  }
  return normalize(folded);
}

function normalize(ranges: Ranges): Ranges {
  const pairs: [number, number][] = [];
  for (let i = 0; i < ranges.length; i += 2) pairs.push([ranges[i]!, ranges[i + 1]!]);
  pairs.sort((a, b) => a[0] - b[0]);
  const result: number[] = [];
  for (const [low, high] of pairs) {
    const last = result.length - 1;
    if (last > 0 && low <= result[last]! + 1) result[last] = Math.max(result[last]!, high);
    else result.push(low, high);
  }
  return result;
}

function invert(ranges: Ranges): Ranges {
  const result: number[] = [];
  let next = 0;
  for (let i = 0; i < ranges.length; i += 2) {
    if (ranges[i]! > next) result.push(next, ranges[i]! - 1);
    next = ranges[i + 1]! + 1;
  }
  if (next <= LAST_CODE_POINT) result.push(next, LAST_CODE_POINT);
  return result;
}

export const NEWLINE_RANGE: Ranges = [NEWLINE, NEWLINE];
