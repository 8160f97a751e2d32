import type { Command, Input } from '../command.js';
import { Exit } from '../exit.js';
import { stdout } from '../output.js';

export const check: Command = {
  name: 'check',
  summary: 'check configuration files without starting anything',
  operands: 'FILE…',
  count: { least: 1, most: Number.POSITIVE_INFINITY },
  options: { json: { help: 'an array of {"file", "problems": [{"path", "message", "line", "column"}]}' } },
  details: `Prints every problem of every file, one a line: FILE:LINE:COLUMN: PATH: message. Exit code 0 when there is none, else 2.`,
  async run(input: Input): Promise<number> {
    const { checkFiles, formatChecks } = await import('@trunkline/dispatcher');
    const checked = await checkFiles(input.operands);
    if (input.flag('json')) stdout.line(JSON.stringify(checked));
    else for (const line of formatChecks(checked)) stdout.line(line);
    return checked.every(({ problems }) => problems.length === 0) ? Exit.OK : Exit.USAGE;
  },
};
