import { readConfiguration } from './load.js';
import { ConfigurationError, type ConfigurationProblem, formatProblem } from './problems.js';

export interface CheckedFile {
  readonly file: string;
  /** Empty: the file is right. */
  readonly problems: readonly ConfigurationProblem[];
}

/** Checks files just as start and reload do, without applying anything. Never fails for a wrong or missing file. */
export async function checkFiles(files: readonly string[]): Promise<CheckedFile[]> {
  return Promise.all(files.map(checkFile));
}

async function checkFile(file: string): Promise<CheckedFile> {
  try {
    await readConfiguration(file);
    return { file, problems: [] };
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return { file, problems: error.problems };
  }
}

/** One line per problem, `FILE:LINE:COLUMN: PATH: message`; no line for a file that is right. */
export function formatChecks(checked: readonly CheckedFile[]): string[] {
  return checked.flatMap(({ file, problems }) => problems.map((problem) => formatProblem(file, problem)));
}
