import { readFileSync } from 'node:fs';
import { columns, exitHelp, helpOf, parseInput, unknownCommand } from './command.js';
import { commands } from './commands/index.js';
import { Exit, failureOf } from './exit.js';
import { complain, stdout } from './output.js';

const help = (): string =>
  [
    'trunkline COMMAND …',
    '',
    'Commands:',
    ...columns(commands.map(({ name, summary }) => [name, summary])),
    '',
    'trunkline COMMAND --help tells more of each.',
    '',
    exitHelp,
  ].join('\n');

function version(): string {
  const file = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(file) as { version: string }).version;
}

async function main(args: readonly string[]): Promise<number> {
  const [name, ...rest] = args;
  if (name === undefined) {
    process.stderr.write(`${help()}\n`);
    return Exit.USAGE;
  }
  if (name === '--version') {
    stdout.line(version());
    return Exit.OK;
  }
  const asked = name === '--help' || name === '-h' || name === 'help';
  const wanted = asked ? rest[0] : name;
  if (wanted === undefined) {
    stdout.line(help());
    return Exit.OK;
  }
  const command = commands.find((each) => each.name === wanted);
  if (command === undefined) {
    throw await unknownCommand(
      wanted,
      commands.map((each) => each.name),
    );
  }
  const input = asked ? 'help' : await parseInput(command, rest);
  if (input !== 'help') return command.run(input);
  stdout.line(helpOf(command));
  return Exit.OK;
}

// the process ends by itself once its output is written: process.exit would cut it (F101)
try {
  const exit = await main(process.argv.slice(2));
  process.exitCode = exit || (process.exitCode ?? Exit.OK);
} catch (error) {
  const { exit, message } = failureOf(error);
  if (message !== '') complain(message);
  process.exitCode = exit;
}
