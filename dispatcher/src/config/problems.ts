import { TrunklineError } from '@trunkline/proto';

/** One thing wrong with a configuration file. */
export interface ConfigurationProblem {
  /** JSON path of the place, such as `$.services[6].probeAfter`; `$` where it is about the whole file. */
  readonly path: string;
  readonly message: string;
  /** Place in the file, counted from 1; columns count UTF-16 units. Absent where the file could not be read. */
  readonly line?: number;
  readonly column?: number;
}

/** Every problem of a configuration at once. Nothing of a configuration with a problem is ever used. */
export class ConfigurationError extends TrunklineError {
  readonly problems: readonly ConfigurationProblem[];
  readonly file: string | undefined;

  constructor(problems: readonly ConfigurationProblem[], file?: string) {
    super('CONFIG_INVALID', summary(problems, file));
    this.problems = problems;
    this.file = file;
  }
}

const shownInMessage = 20;

function summary(problems: readonly ConfigurationProblem[], file: string | undefined): string {
  const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`;
  const lines = problems.slice(0, shownInMessage).map((problem) => formatProblem(file ?? 'configuration', problem));
  if (problems.length > shownInMessage) lines.push(`… and ${problems.length - shownInMessage} more`);
  return `the configuration is wrong (${count})\n${lines.join('\n')}`;
}

/** One line for people and editors: `FILE:LINE:COLUMN: PATH: message`, without the place where there is none. */
export function formatProblem(file: string, problem: ConfigurationProblem): string {
  const place = problem.line === undefined ? '' : `:${problem.line}:${problem.column ?? 1}`;
  return `${file}${place}: ${problem.path}: ${problem.message}`;
}

export type Path = readonly (string | number)[];

const plainKey = /^[A-Za-z_$][\w$]*$/;

/** `['services', 6, 'probeAfter']` → `$.services[6].probeAfter`; other keys are quoted as in JSON. */
export function formatPath(path: Path): string {
  let text = '$';
  for (const segment of path) {
    if (typeof segment === 'number') text += `[${segment}]`;
    else text += plainKey.test(segment) ? `.${segment}` : `[${JSON.stringify(segment)}]`;
  }
  return text;
}

/** The known word that a mistyped one was probably meant to be. */
export function closest(word: string, known: Iterable<string>): string | undefined {
  if (word.length > 64) return undefined;
  let best: string | undefined;
  // one slip in four letters, at most three
  let bound = Math.min(3, Math.max(1, Math.floor(word.length / 4)));
  for (const candidate of known) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance <= bound && candidate !== word) {
      best = candidate;
      bound = distance - 1;
    }
  }
  return best;
}

/** Insertions, deletions, replacements and swaps of neighbours that turn one word into the other. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let cost = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, (beforeLast[j - 2] ?? 0) + 1);
      }
      row.push(cost);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? 0;
}

/** `; did you mean "x"?`, or nothing. */
export function hint(word: string, known: Iterable<string>): string {
  const guess = closest(word, known);
  return guess === undefined ? '' : `; did you mean "${guess}"?`;
}
