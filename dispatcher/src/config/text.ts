/** The text of a file without its byte order mark; with a `problem` it is only good for finding the place. */
export interface DecodedText {
  readonly text: string;
  readonly problem?: { readonly message: string /** In UTF-16 units of `text`. */; readonly offset: number };
}

/** Accepts UTF-8 with or without a byte order mark and says what anything else is (F95). */
export function decodeText(bytes: Uint8Array): DecodedText {
  const [first, second, third, fourth] = bytes;
  const refuse = (what: string): DecodedText => ({
    text: '',
    problem: { message: `the file is ${what}; save it as UTF-8`, offset: 0 },
  });
  if (first === 0xff && second === 0xfe) {
    return refuse(
      third === 0 && fourth === 0 ? 'UTF-32 (it begins with FF FE 00 00)' : 'UTF-16 (it begins with FF FE)',
    );
  }
  if (first === 0xfe && second === 0xff) return refuse('UTF-16 (it begins with FE FF)');
  if (bytes.includes(0)) return refuse('not UTF-8 text: it has NUL bytes, as UTF-16 without a byte order mark has');
  const text = new TextDecoder('utf-8').decode(bytes);
  const wrong = firstDifference(bytes, new TextEncoder().encode(text));
  if (wrong === undefined) return { text };
  const offset = new TextDecoder('utf-8').decode(bytes.subarray(0, wrong)).length;
  const value = (bytes[wrong] ?? 0).toString(16).toUpperCase().padStart(2, '0');
  return { text, problem: { message: `the file is not valid UTF-8: byte ${wrong} is ${value}`, offset } };
}

/** A decoder that replaces bad bytes gives text that encodes to something else from the first bad byte on. */
function firstDifference(bytes: Uint8Array, encoded: Uint8Array): number | undefined {
  const skipped = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  for (let index = skipped; index < bytes.length; index++) {
    if (bytes[index] !== encoded[index - skipped]) return index;
  }
  return undefined;
}

/** Line and column of an offset, both from 1. Lines end with LF, CRLF or CR. */
export class LineMap {
  readonly #starts: number[] = [0];

  constructor(text: string) {
    for (const end of text.matchAll(/\r\n|\n|\r/g)) this.#starts.push(end.index + end[0].length);
  }

  at(offset: number): { line: number; column: number } {
    let low = 0;
    let high = this.#starts.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#starts[middle] ?? 0) <= offset) low = middle + 1;
      else high = middle;
    }
    return { line: low, column: offset - (this.#starts[low - 1] ?? 0) + 1 };
  }
}
