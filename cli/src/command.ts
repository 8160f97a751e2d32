import { parseArgs } from 'node:util';
import { maxDuration, parseDuration } from '@trunkline/dispatcher/units';
import { decodeParams, TrunklineError } from '@trunkline/proto';
import { Exit, Failure } from './exit.js';

export interface Option {
  /** What stands for the value in the help; a flag has none. */
  readonly value?: string;
  readonly help: string;
}

export type Options = Readonly<Record<string, Option>>;

export interface Command {
  readonly name: string;
  readonly summary: string;
  /** What follows the name and the options, in the words of the help. */
  readonly operands?: string;
  /** How many operands there are, before `--`. */
  readonly count: { readonly least: number; readonly most: number };
  /** Whether a command line may follow `--`. */
  readonly takesCommand?: boolean;
  readonly options: Options;
  /** More paragraphs for the help. */
  readonly details?: string;
  /** Returns the exit code. */
  run(input: Input): Promise<number>;
}

const usage = (message: string): Failure => new Failure(Exit.USAGE, message);

/** The closest of the known words, as a question. */
async function didYouMean(word: string, known: readonly string[], prefix = ''): Promise<string> {
  const { closest } = await import('@trunkline/dispatcher');
  const begun = word === '' ? [] : known.filter((each) => each.startsWith(word));
  const guess = begun[0] ?? closest(word, known);
  return guess === undefined ? '' : `; did you mean ${prefix}${guess}?`;
}

export async function unknownCommand(name: string, known: readonly string[]): Promise<Failure> {
  return usage(`unknown command ${name}${await didYouMean(name, known)} (trunkline --help lists them)`);
}

/** The command line of one command. */
export class Input {
  constructor(
    private readonly values: Readonly<Record<string, string | true>>,
    readonly operands: readonly string[],
    /** What follows `--`. */
    readonly command: readonly string[],
  ) {}

  flag(name: string): boolean {
    return this.values[name] !== undefined;
  }

  text(name: string): string | undefined {
    return this.values[name] as string | undefined;
  }

  integer(name: string, least: number, most = Number.MAX_SAFE_INTEGER): number | undefined {
    const text = this.text(name);
    return text === undefined ? undefined : integerOf(`--${name}`, text, least, most);
  }

  /** Milliseconds. */
  duration(name: string): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const value = parseDuration(text);
    if (value === undefined || value < 1 || value > maxDuration) {
      throw usage(`--${name} must be a duration such as 500ms, 2s, 5m or 1h, not ${JSON.stringify(text)}`);
    }
    return value;
  }

  /** JSON with exact integers. */
  params(): unknown {
    const text = this.text('params');
    if (text === undefined) return undefined;
    try {
      return decodeParams(new TextEncoder().encode(text));
    } catch (error) {
      if (!(error instanceof TrunklineError)) throw error;
      throw usage(`--params: ${error.message}: ${JSON.stringify(text)}`);
    }
  }

  /** The service code that is the first operand. */
  code(): number {
    return integerOf('the service code', this.operands[0]!, 1, 0xffff_ffff);
  }
}

export function integerOf(what: string, text: string, least: number, most: number): number {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw usage(`${what} must be an integer ${least}..${most}, not ${JSON.stringify(text)}`);
}

/** @throws Failure USAGE */
export async function parseInput(command: Command, args: readonly string[]): Promise<Input | 'help'> {
  const { options } = command;
  const config: Record<string, { type: 'string' | 'boolean'; short?: string }> = {};
  for (const [name, { value }] of Object.entries(options)) {
    config[name] = { type: value === undefined ? 'boolean' : 'string' };
  }
  config.help = { type: 'boolean', short: 'h' };
  const { tokens } = parseArgs({
    args: [...args],
    options: config,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const values: Record<string, string | true> = {};
  const operands: string[] = [];
  let end = args.length;
  for (const token of tokens) {
    if (token.kind === 'option-terminator') end = Math.min(end, token.index);
    else if (token.kind === 'positional') {
      if (token.index < end) operands.push(token.value);
    } else {
      const { name, rawName, value } = token;
      if (name === 'help') return 'help';
      if (values[name] !== undefined) throw usage(`${rawName} is given twice`);
      values[name] = await optionValue(command, name, rawName, value);
    }
  }
  const rest = args.slice(end + 1);
  checkOperands(command, operands, rest);
  return new Input(values, operands, rest);
}

async function optionValue(
  { name: command, options }: Command,
  name: string,
  rawName: string,
  value: string | undefined,
): Promise<string | true> {
  const option = Object.hasOwn(options, name) ? options[name] : undefined;
  if (option === undefined) {
    const hint = await didYouMean(name, [...Object.keys(options), 'help'], '--');
    throw usage(`unknown option ${rawName}${hint} (trunkline ${command} --help lists them)`);
  }
  if (option.value === undefined) {
    if (value !== undefined) throw usage(`${rawName} takes no value`);
    return true;
  }
  if (value === undefined) throw usage(`${rawName} needs a value: ${rawName} ${option.value}`);
  return value;
}

function checkOperands(command: Command, operands: readonly string[], rest: readonly string[]): void {
  const { name, count, takesCommand = false } = command;
  if (operands.length < count.least) throw usage(`${name} needs ${command.operands} (trunkline ${name} --help)`);
  const extra = operands[count.most] ?? (takesCommand ? undefined : rest[0]);
  if (extra === undefined) return;
  const hint = takesCommand ? '; put -- before the command that it runs' : '';
  throw usage(`${name} does not know what to do with ${JSON.stringify(extra)}${hint}`);
}

/** The help of one command. */
export function helpOf({ name, operands = '', summary, options, details }: Command): string {
  const rows = Object.entries(options).map(([option, { value, help }]): [string, string] => [
    `--${option}${value === undefined ? '' : ` ${value}`}`,
    help,
  ]);
  rows.push(['--help', 'show this']);
  const lines = [`trunkline ${name} ${operands}`.trim(), '', summary, '', 'Options:', ...columns(rows)];
  return [...lines, ...(details === undefined ? [] : ['', details])].join('\n');
}

export function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}

export const exitHelp = `Exit codes:
  0  done; also after SIGINT or SIGTERM, and when the reader of the output went away
  1  failed: connection refused for good or closed, stream ended with an error, address in use
  2  the command line or a configuration file is wrong
  3  the request was refused; the coded reason is on standard error
  4  no answer in the time given with --timeout
  A stream that ends with the exit code of a command (EXITED) makes sub and request exit with it.`;
