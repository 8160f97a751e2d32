import type { ConfigurationError } from '@trunkline/dispatcher';
import type { Command, Input } from '../command.js';
import { Exit, Failure } from '../exit.js';

export const dispatcher: Command = {
  name: 'dispatcher',
  summary: 'run a dispatcher',
  operands: '--config FILE',
  count: { least: 0, most: 0 },
  options: { config: { value: 'FILE', help: 'its configuration, read again at every SIGHUP' } },
  details: `Logs JSON lines to standard error. SIGHUP applies the file anew, whole or not at all. SIGTERM and SIGINT stop it
within the "drain" time of the configuration, a second one at once.
A wrong configuration is told one problem a line, FILE:LINE:COLUMN: PATH: message, with exit code 2; an address that
something else listens at ends it with exit code 1.`,
  async run(input: Input): Promise<number> {
    const file = input.text('config');
    if (file === undefined) throw new Failure(Exit.USAGE, 'dispatcher needs --config FILE');
    const { ConfigurationError, formatChecks, runDaemon } = await import('@trunkline/dispatcher');
    try {
      await runDaemon({ file });
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      const { problems } = error as ConfigurationError;
      process.stderr.write(`${formatChecks([{ file, problems }]).join('\n')}\n`);
      throw new Failure(Exit.USAGE, '');
    }
    return Exit.OK;
  },
};
