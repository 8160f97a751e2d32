import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Readable } from 'node:stream';
import { TrunklineError } from '@trunkline/proto';
import type { Guard } from './guard.js';

export interface Exited {
  /** As a shell tells it: 128 and the signal's number where a signal ended it. */
  readonly exit: number;
  readonly message: string;
}

/** How often a group whose command has ended is looked at until nobody is left in it. */
const LOOK_MS = 20;

/** A command in a process group of its own, so that what it starts ends with it. */
export class ProcessGroup {
  /** Resolves when the command itself has ended. */
  readonly exited: Promise<Exited>;
  /** Resolves when nothing of the group is left. */
  readonly gone: Promise<void>;
  private readonly pid: number;
  private killTimer: NodeJS.Timeout | undefined;
  private lookTimer: NodeJS.Timeout | undefined;
  private exitedAlready = false;
  private settleGone: () => void = () => {};

  private constructor(
    private readonly child: ChildProcess,
    private readonly guard: Guard,
    private readonly killAfterMs: number,
  ) {
    this.pid = child.pid!;
    guard.add(this.pid);
    this.gone = new Promise((resolve) => {
      this.settleGone = resolve;
    });
    this.exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.exitedAlready = true;
        // what it left behind in its group ends with it
        this.lookTimer = setInterval(() => this.look(), LOOK_MS);
        this.stop();
        resolve(exitOf(code, signal));
      });
    });
  }

  /** @throws TrunklineError REFUSED: it cannot be started */
  static async start(
    command: string,
    args: readonly string[],
    env: NodeJS.ProcessEnv,
    guard: Guard,
    killAfterMs: number,
  ): Promise<ProcessGroup> {
    let child: ChildProcess;
    try {
      child = spawn(command, args, { detached: true, stdio: ['ignore', 'pipe', 'inherit'], env });
    } catch (error) {
      throw cannotStart(command, error);
    }
    if (child.pid !== undefined) return new ProcessGroup(child, guard, killAfterMs);
    throw cannotStart(command, await new Promise((resolve) => child.once('error', resolve)));
  }

  get stdout(): Readable {
    return this.child.stdout!;
  }

  /** SIGTERM to the group, and SIGKILL after a while to what is still there. */
  stop(): void {
    if (!this.signal('SIGTERM')) this.left();
    else this.killTimer ??= setTimeout(() => this.kill(), this.killAfterMs);
  }

  private look(): void {
    if (!this.signal(0)) this.left();
  }

  /** Ends it at once; does not wait. */
  kill(): void {
    this.signal('SIGKILL');
    this.left();
  }

  /** Returns whether the group has anybody left. */
  private signal(signal: NodeJS.Signals | 0): boolean {
    try {
      return process.kill(-this.pid, signal);
    } catch {
      return false;
    }
  }

  private left(): void {
    // killed, but the news of it is still to come: its exit calls again
    if (!this.exitedAlready) return;
    clearTimeout(this.killTimer);
    clearInterval(this.lookTimer);
    this.guard.remove(this.pid);
    this.settleGone();
  }
}

function cannotStart(command: string, error: unknown): TrunklineError {
  const { code, message } = error as NodeJS.ErrnoException;
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: 'there is no such command',
    EACCES: 'it may not be executed',
    E2BIG: 'its arguments are too long',
  };
  return new TrunklineError('REFUSED', `cannot start ${command}: ${reasons[code ?? ''] ?? message}`, { cause: error });
}

function exitOf(code: number | null, signal: NodeJS.Signals | null): Exited {
  if (signal === null) return { exit: code ?? 0, message: '' };
  return { exit: 128 + constants.signals[signal], message: `ended by ${signal}` };
}
