import {
  createScanner,
  findNodeAtLocation,
  getLocation,
  type Node,
  type ParseError,
  parseTree,
  printParseErrorCode,
} from 'jsonc-parser';
import { type ConfigurationProblem, formatPath, type Path } from './problems.js';
import { decodeText, LineMap } from './text.js';

const strict = { disallowComments: true, allowTrailingComma: false, allowEmptyContent: false };
const lenient = { disallowComments: false, allowTrailingComma: true, allowEmptyContent: false };
/** Far above what a configuration needs and far below what a recursive parser can take. */
const maxDepth = 100;
const maxSyntaxProblems = 50;

interface Range {
  readonly start: number;
  readonly end: number;
}

/**
 * A JSON file taken apart: its value, where each part stands, and what is wrong with its syntax. JSON.parse alone
 * stops at the first error and keeps the last of two equal keys in silence (F94); here both are reported, and the value
 * is still checked further as long as the errors leave no doubt about it.
 */
export class JsonDocument {
  /** Undefined: too broken for any further check. With `problems` it serves to find more of them, and nothing else. */
  readonly value: unknown;
  readonly problems: ConfigurationProblem[] = [];
  readonly #reported = new Set<string>();
  readonly #root: Node | undefined;
  readonly #text: string;
  readonly #lines: LineMap;
  /** Where the syntax is wrong; what stands there was reported and is not judged again. */
  #damaged: readonly Range[] = [];

  constructor(bytes: Uint8Array) {
    const { text, problem } = decodeText(bytes);
    this.#text = text;
    this.#lines = new LineMap(text);
    if (problem !== undefined) this.#report(problem.offset, [], problem.message);
    else if (text.trim() === '') this.#report(0, [], 'the file is empty');
    else {
      const deep = tooDeep(text);
      if (deep !== undefined) this.#report(deep, [], `nested more than ${maxDepth} levels deep`);
      else {
        this.#root = this.#parse();
        this.value = this.#root === undefined ? undefined : contentOf(this.#root);
      }
    }
  }

  /** Adds a problem at a path; `key` points at the last key itself instead of its value. */
  report(path: Path, message: string, place: 'value' | 'key' = 'value'): void {
    const node = this.#find(path, place);
    if (node !== undefined && this.#isDamaged(node)) return;
    this.#report(node?.offset ?? 0, path, message);
  }

  /** `$.services[2].code (line 12)`, to name a second place in a message. */
  placeOf(path: Path): string {
    const node = this.#find(path, 'value');
    return `${formatPath(path)} (line ${this.#lines.at(node?.offset ?? 0).line})`;
  }

  #report(offset: number, path: Path, message: string): void {
    const text = formatPath(path);
    const key = `${text}: ${message}`;
    if (!this.#reported.has(key)) this.problems.push({ path: text, message, ...this.#lines.at(offset) });
    this.#reported.add(key);
  }

  #parse(): Node | undefined {
    const errors: ParseError[] = [];
    const tree = parseTree(this.#text, errors, strict);
    if (errors.length === 0) {
      this.#reportDuplicateKeys(tree);
      return tree;
    }
    this.#reportSyntax(errors);
    const repaired = this.#repair(errors);
    this.#reportDuplicateKeys(repaired ?? tree);
    return repaired;
  }

  /**
   * The tree as it would be without errors that cannot be misread: comments, commas too many at an end or missing
   * between two elements, and bare words such as 0x64 in the place of a value.
   */
  #repair(errors: readonly ParseError[]): Node | undefined {
    let text = this.#text;
    const damaged: Range[] = [];
    for (const error of errors) {
      if (printParseErrorCode(error.error) !== 'InvalidSymbol') continue;
      let start = error.offset;
      while (start > 0 && /[\w.+-]/.test(text.charAt(start - 1))) start--;
      const end = error.offset + error.length;
      // a bare word as a key: what the object would be with it is a guess
      if (/^\s*:/.test(text.slice(end))) return undefined;
      const filler = end - start < 2 ? '0' : '""';
      text = text.slice(0, start) + filler.padEnd(end - start) + text.slice(end);
      damaged.push({ start, end });
    }
    const left: ParseError[] = [];
    const tree = parseTree(text, left, lenient);
    if (left.some((error) => printParseErrorCode(error.error) !== 'CommaExpected')) return undefined;
    this.#damaged = damaged;
    return tree;
  }

  /** Leaves out what only follows from the error before: nothing but a piece of a word stands between the two. */
  #reportSyntax(errors: readonly ParseError[]): void {
    let last: Range | undefined;
    for (const error of errors) {
      const kind = printParseErrorCode(error.error);
      const follows =
        last !== undefined &&
        kind.endsWith('Expected') &&
        /^[\w.:+ \t-]*$/.test(this.#text.slice(last.end, error.offset));
      last = { start: error.offset, end: Math.max(last?.end ?? 0, error.offset + error.length) };
      if (follows) continue;
      if (this.problems.length >= maxSyntaxProblems) return;
      const { path } = getLocation(this.#text, error.offset);
      const { offset, message } = this.#syntaxProblem(kind, error);
      this.#report(
        offset,
        path.filter((segment) => segment !== ''),
        message,
      );
    }
  }

  #syntaxProblem(kind: string, { offset, length }: ParseError): { offset: number; message: string } {
    const before = this.#text.slice(0, offset);
    const next = this.#text.charAt(offset);
    if ((kind === 'ValueExpected' || kind === 'PropertyNameExpected') && before.trimEnd().endsWith(',')) {
      const comma = before.trimEnd().length - 1;
      if (next === '}' || next === ']') return { offset: comma, message: 'trailing comma' };
      if (next === ',') return { offset, message: 'two commas in a row' };
    }
    // the parser takes a number such as 0 off a word such as 0x64 before it stumbles; shown is the whole word
    const wordStart = kind === 'InvalidSymbol' || kind === 'CommaExpected' ? (/[\w.+-]*$/.exec(before)?.[0] ?? '') : '';
    const found = JSON.stringify(wordStart + this.#text.slice(offset, offset + Math.min(length, 40)));
    const messages: Record<string, string> = {
      InvalidSymbol: `${found} is no JSON value; texts need double quotes, numbers are decimal`,
      InvalidNumberFormat: `${found} is no JSON number`,
      PropertyNameExpected: 'a key in double quotes is expected here',
      ValueExpected: 'a value is expected here',
      ColonExpected: 'a colon is expected here',
      CommaExpected: wordStart === '' ? 'a comma is expected before this' : `${found} is no JSON value`,
      CloseBraceExpected: 'the file ends before a closing }',
      CloseBracketExpected: 'the file ends before a closing ]',
      EndOfFileExpected: 'nothing may follow the end of the configuration',
      InvalidCommentToken: 'comments are not allowed in JSON',
      UnexpectedEndOfComment: 'the file ends inside a comment',
      UnexpectedEndOfString: 'a text without its closing quote',
      UnexpectedEndOfNumber: `${found} is no JSON number`,
      InvalidUnicode: 'a wrong \\u escape in a text',
      InvalidEscapeCharacter: 'a wrong escape in a text',
      InvalidCharacter: 'a control character in a text; write it as an escape',
    };
    return { offset: offset - wordStart.length, message: messages[kind] ?? 'not JSON' };
  }

  #reportDuplicateKeys(node: Node | undefined, path: Path = []): void {
    if (node?.type === 'array') {
      for (const [index, child] of (node.children ?? []).entries()) this.#reportDuplicateKeys(child, [...path, index]);
    }
    if (node?.type !== 'object') return;
    const seen = new Map<string, Node>();
    for (const { key, keyNode, value } of propertiesOf(node)) {
      const first = seen.get(key);
      if (first === undefined) seen.set(key, keyNode);
      else {
        const { line, column } = this.#lines.at(first.offset);
        this.#report(keyNode.offset, [...path, key], `the same key is already at line ${line}, column ${column}`);
      }
      this.#reportDuplicateKeys(value, [...path, key]);
    }
  }

  #find(path: Path, place: 'value' | 'key'): Node | undefined {
    if (this.#root === undefined) return undefined;
    for (let length = path.length; length >= 0; length--) {
      const node = findNodeAtLocation(this.#root, path.slice(0, length));
      if (node === undefined) continue;
      const isKey = place === 'key' && length === path.length && node.parent?.type === 'property';
      return isKey ? node.parent?.children?.[0] : node;
    }
    return this.#root;
  }

  #isDamaged(node: Node): boolean {
    return this.#damaged.some(({ start, end }) => node.offset >= start && node.offset < end);
  }
}

/** Offset of the bracket that goes below the depth allowed. */
function tooDeep(text: string): number | undefined {
  const scanner = createScanner(text, true);
  let depth = 0;
  // a scanner at its end gives EOF, which has no text; SyntaxKind is a const enum and cannot be named here
  for (scanner.scan(); scanner.getTokenLength() > 0; scanner.scan()) {
    const token = scanner.getTokenLength() === 1 ? text.charAt(scanner.getTokenOffset()) : '';
    if (token === '{' || token === '[') depth++;
    else if (token === '}' || token === ']') depth--;
    if (depth > maxDepth) return scanner.getTokenOffset();
  }
  return undefined;
}

function* propertiesOf(node: Node): Iterable<{ key: string; keyNode: Node; value: Node }> {
  for (const property of node.children ?? []) {
    const [keyNode, value] = property.children ?? [];
    if (keyNode !== undefined && value !== undefined) yield { key: String(keyNode.value), keyNode, value };
  }
}

/** Of two equal keys the first counts, as for the places in messages; `__proto__` is a key like any other. */
function contentOf(node: Node): unknown {
  if (node.type === 'array') return (node.children ?? []).map(contentOf);
  if (node.type !== 'object') return node.value;
  const object = {};
  for (const { key, value } of propertiesOf(node)) {
    if (Object.hasOwn(object, key)) continue;
    Object.defineProperty(object, key, {
      value: contentOf(value),
      enumerable: true,
      writable: true,
      configurable: true,
    });
  }
  return object;
}
