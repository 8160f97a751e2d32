import { TrunklineError } from '@trunkline/proto';

/** Exit codes of every command; `sub` and `request` also hand on that of a command behind the stream. */
export const Exit = {
  OK: 0,
  /** It did not work: lost, closed, ended with an error, address in use. */
  FAILED: 1,
  /** The command line or a configuration file is wrong. */
  USAGE: 2,
  /** The dispatcher or the provider refused. */
  REFUSED: 3,
  /** No answer in the time given. */
  TIMEOUT: 4,
} as const;

/** Ends a command with an exit code and, unless it is empty, a message. */
export class Failure extends Error {
  constructor(
    readonly exit: number,
    message: string,
  ) {
    super(message);
  }
}

const usageCodes: readonly string[] = ['OPTION_INVALID', 'PARAMS_INVALID', 'ADDRESS_INVALID', 'CONFIG_INVALID'];

/** What an error that ended a command means to the caller. */
export function failureOf(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (error instanceof TrunklineError) return new Failure(exitOf(error), `${error.code}: ${error.message}`);
  return new Failure(Exit.FAILED, error instanceof Error ? (error.stack ?? error.message) : String(error));
}

function exitOf({ code }: TrunklineError): number {
  if (code === 'TIMEOUT') return Exit.TIMEOUT;
  return usageCodes.includes(code) ? Exit.USAGE : Exit.FAILED;
}

/** The exit code that stands for a command's own: a shell sees only eight bits, and failure must not turn into 0. */
export function passedOn(exit: number): number {
  return exit === 0 ? Exit.OK : exit & 0xff || Exit.FAILED;
}
