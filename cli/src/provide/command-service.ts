import { defaultSessionLimits, TrunklineError } from '@trunkline/proto';
import type { Subscription } from '@trunkline/publisher';
import { LineSplitter } from '../lines.js';
import { fillArguments } from './arguments.js';
import { Guard } from './guard.js';
import { ProcessGroup } from './process-group.js';
import { respondLine } from './response.js';

export interface CommandTemplate {
  readonly command: string;
  /** With `{name}` where a param goes. */
  readonly args: readonly string[];
}

/** A command as a service: started once for each distinct request, ended by its last unsubscribe. */
export class CommandService {
  private readonly running = new Set<ProcessGroup>();
  private readonly guard: Guard;

  constructor(
    private readonly template: CommandTemplate,
    private readonly killAfterMs: number,
  ) {
    this.guard = new Guard(killAfterMs);
  }

  /** The provider's handler. @throws TrunklineError REFUSED, PARAMS_INVALID: nothing was started */
  readonly handle = async (subscription: Subscription): Promise<() => void> => {
    const { command, args } = this.template;
    const { params, paramsBytes, code } = subscription;
    const json = params === undefined ? '{}' : new TextDecoder().decode(paramsBytes);
    const filled = fillArguments(args, params);
    const env = { ...process.env, TRUNKLINE_PARAMS: json, TRUNKLINE_CODE: String(code) };
    const group = await ProcessGroup.start(command, filled, env, this.guard, this.killAfterMs);
    this.running.add(group);
    void group.gone.then(() => this.running.delete(group));
    void forward(group, subscription);
    return () => {
      group.stdout.destroy();
      group.stop();
    };
  };

  /** Resolves when every command has ended; the provider was closed before. */
  async close(): Promise<void> {
    await Promise.all([...this.running].map((group) => group.gone));
    this.guard.close();
  }

  /** For the exit of the process, when nothing can be waited for. */
  killAll(): void {
    for (const group of this.running) group.kill();
  }
}

/** Each line of the output is a response, the exit is the END. Never rejects. */
async function forward(group: ProcessGroup, subscription: Subscription): Promise<void> {
  try {
    const splitter = new LineSplitter(defaultSessionLimits.maxMessage);
    for await (const chunk of group.stdout) {
      for (const line of splitter.push(chunk as Uint8Array)) await send(subscription, line);
    }
    const rest = splitter.rest();
    if (rest !== undefined) await send(subscription, rest);
    const { exit, message } = await group.exited;
    subscription.end({ exit, message });
  } catch (error) {
    if (subscription.over) return;
    const tooLarge =
      error instanceof RangeError || (error instanceof TrunklineError && error.code === 'MESSAGE_TOO_LARGE');
    subscription.end({ code: tooLarge ? 'MESSAGE_TOO_LARGE' : 'HANDLER_FAILED', message: (error as Error).message });
  }
}

/** Waits where the dispatcher cannot take more, and with it the command, whose pipe fills. Nothing is left out. */
function send(subscription: Subscription, line: Uint8Array): Promise<void> | undefined {
  return respondLine(subscription, line) ? undefined : retry(subscription, line);
}

/** Rejects when the subscription is over. */
async function retry(subscription: Subscription, line: Uint8Array): Promise<void> {
  do await subscription.drained();
  while (!respondLine(subscription, line));
}
