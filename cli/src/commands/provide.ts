import { TrunklineError } from '@trunkline/proto';
import { type BindOptions, bind, type Codes, connect, type Provider } from '@trunkline/publisher';
import { addressesOf, connectionOptions, connectOptions, processOptions } from '../client.js';
import { type Command, type Input, integerOf } from '../command.js';
import { allowedKeysOf, pairOf } from '../curve.js';
import { Exit, Failure } from '../exit.js';
import { complain, stdout } from '../output.js';
import { CommandService } from '../provide/command-service.js';
import { onSignal } from '../signals.js';

const DEFAULT_KILL = 5000;

export const provide: Command = {
  name: 'provide',
  summary: 'serve a command as a service',
  operands: 'CODE[-CODE] -- COMMAND ARGS…',
  count: { least: 1, most: 1 },
  takesCommand: true,
  options: {
    connect: { value: 'ADDRESS', help: 'dial in to the dispatcher there; the same as --dispatcher' },
    bind: { value: 'ADDRESS', help: 'listen there instead, for a dispatcher whose forwarding table names the address' },
    'timeout-kill': { value: 'DURATION', help: 'from SIGTERM to SIGKILL when a command has to end; default 5s' },
    ...connectionOptions,
    'curve-allowed-keys-file': {
      value: 'FILE',
      help: 'with --bind and own keys: public keys of the dispatchers that may dial, one a line; else whoever knows ours',
    },
  },
  details: `Starts the command once for each distinct request, however many subscribe, and ends it with the last of them:
SIGTERM to its process group, SIGKILL after --timeout-kill.
  Params      the JSON text in TRUNKLINE_PARAMS ({} where there are none), the service code in TRUNKLINE_CODE. {name} in
              ARGS is replaced by that param, as one argument that no shell reads; {{name}} stands for {name} itself. A
              param that is missing refuses the request, and so does one that begins with "-" and would be an option:
              behind a "--" in ARGS it is not.
  Responses   each line of its standard output. A line that is a JSON object is a JSON body with its scalar fields as
              attrs and its texts "key" and "tag" as key and tag; any other line is text.
  End         its exit is the END, EXITED with the exit code (128 + the signal's number for a signal), once its output is
              closed too. A line longer than a message may be ends it with MESSAGE_TOO_LARGE.
  A slow dispatcher holds up the command at its standard output; no line is left out. Standard error passes through.
  Commands end with this process. That it is killed (SIGKILL) is noticed by a guard, a /bin/sh in a group of its own,
  which ends them then. A command that leaves its process group is not followed.
Several processes may provide one code: the send handler of the service chooses.
Exit codes: 0 after SIGINT or SIGTERM, 1 when the dispatcher ends the session for good, 2 wrong command line.`,
  run,
};

async function run(input: Input): Promise<number> {
  const [command, ...args] = input.command;
  if (command === undefined) throw new Failure(Exit.USAGE, 'provide needs a command after --');
  const codes = codesOf(input.operands[0]!);
  const service = new CommandService({ command, args }, input.duration('timeout-kill') ?? DEFAULT_KILL);
  const killAll = () => service.killAll();
  process.on('exit', killAll);
  const abort = new AbortController();
  const off = onSignal(() => abort.abort());
  try {
    return await serve(input, codes, service, abort.signal);
  } finally {
    await service.close();
    process.off('exit', killAll);
    off();
  }
}

function codesOf(text: string): Codes {
  const [first, last = first, more] = text.split('-');
  if (more !== undefined) throw new Failure(Exit.USAGE, `${JSON.stringify(text)} is no range of service codes`);
  const [from, to] = [first!, last!].map((code) => integerOf('a service code', code, 1, 0xffff_ffff)) as [
    number,
    number,
  ];
  if (from > to) throw new Failure(Exit.USAGE, `the range ${text} ends before it begins`);
  return { from, to };
}

async function serve(input: Input, codes: Codes, service: CommandService, signal: AbortSignal): Promise<number> {
  const provider = await open(input, signal);
  if (provider === undefined) return Exit.OK;
  provider.on('error', (error) => complain(`${error.code}: ${error.message}`));
  const closed = new Promise<number>((resolve) => {
    signal.addEventListener('abort', () => resolve(Exit.OK));
    provider.on('state', (state) => {
      if (state === 'closed') resolve(Exit.FAILED);
      else stdout.line(`-- ${state}`);
    });
  });
  if (signal.aborted || provider.state === 'closed') {
    await provider.close();
    return signal.aborted ? Exit.OK : Exit.FAILED;
  }
  provider.provide(codes, service.handle);
  stdout.line(`-- providing ${input.operands[0]} at ${provider.address ?? provider.connection!.address}`);
  const exit = await closed;
  await provider.close();
  return exit;
}

/** The token is what a dispatcher must show. */
function bindOptions(input: Input): BindOptions {
  const pair = pairOf(input);
  const allowedKeys = allowedKeysOf(input);
  if (pair === undefined && allowedKeys !== undefined) {
    throw new Failure(Exit.USAGE, 'allowed keys need --curve-secret-key-file');
  }
  const curve = pair === undefined ? {} : { curve: { ...pair, ...(allowedKeys === undefined ? {} : { allowedKeys }) } };
  return { ...processOptions(input, 'provide'), ...curve };
}

/** Undefined when a signal came before the dispatcher. */
async function open(input: Input, signal: AbortSignal): Promise<Provider | undefined> {
  const address = input.text('bind');
  const target = input.text('connect');
  if (address !== undefined && target !== undefined) {
    throw new Failure(Exit.USAGE, 'provide takes one of --connect and --bind');
  }
  try {
    if (address !== undefined) return await bind(address, bindOptions(input));
    const options = connectOptions(input, 'provide');
    return await connect(target === undefined ? addressesOf(input) : target.split(','), { ...options, signal });
  } catch (error) {
    if (error instanceof TrunklineError && signal.aborted) return undefined;
    throw error;
  }
}
