import { TrunklineError } from '@trunkline/proto';
import type { Message } from '@trunkline/subscriber/core';
import { connectionOptions, openClient, refusalOf } from '../client.js';
import type { Command, Input } from '../command.js';
import { Exit, Failure, passedOn } from '../exit.js';
import { messageJson } from '../json.js';
import { stdout } from '../output.js';
import { onSignal } from '../signals.js';

const DEFAULT_TIMEOUT = 30_000;

export const request: Command = {
  name: 'request',
  summary: 'ask a service once and print its answer',
  operands: 'CODE',
  count: { least: 1, most: 1 },
  options: {
    params: { value: 'JSON', help: 'with the code, what identifies the request' },
    timeout: { value: 'DURATION', help: 'how long to wait for the dispatcher and the answer; default 30s' },
    json: { help: 'print the whole response, as sub --json does' },
    ...connectionOptions,
  },
  details: `Prints the body of the final response. Exit codes: 3 refused, 4 no answer in time; a stream that ends
without a final response gives the exit code of the command behind it, or 1.`,
  async run(input: Input): Promise<number> {
    const code = input.code();
    const options = { params: input.params(), timeoutMs: input.duration('timeout') ?? DEFAULT_TIMEOUT };
    const client = openClient(input, 'request');
    const abort = new AbortController();
    const off = onSignal(() => abort.abort());
    try {
      const answer = client.request(code, { ...options, signal: abort.signal });
      const message = await Promise.race([answer, refusalOf(client)]);
      print(message, input.flag('json'));
      return Exit.OK;
    } catch (error) {
      if (!(error instanceof TrunklineError)) throw error;
      if (abort.signal.aborted) return Exit.OK;
      throw new Failure(exitOf(error), `${error.code}: ${error.message}`);
    } finally {
      off();
      await client.close();
    }
  },
};

function print(message: Message, json: boolean): void {
  if (json) {
    stdout.line(messageJson(message));
    return;
  }
  stdout.write(message.body.slice());
  if (message.body.at(-1) !== 0x0a) stdout.write('\n');
}

const ownCodes: readonly string[] = ['OPTION_INVALID', 'PARAMS_INVALID'];

/** The answer to a request that got none: it was refused, unless something else is known. */
function exitOf({ code, exit }: TrunklineError): number {
  if (code === 'TIMEOUT') return Exit.TIMEOUT;
  if (ownCodes.includes(code)) return Exit.USAGE;
  if (code === 'COMPLETED' || code === 'EXITED') return passedOn(exit ?? 0) || Exit.FAILED;
  return Exit.REFUSED;
}
