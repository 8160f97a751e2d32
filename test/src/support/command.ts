import { type ChildProcess, spawn } from 'node:child_process';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { until } from './wait.js';

export const repository = fileURLToPath(new URL('../../../', import.meta.url));
const binary = fileURLToPath(new URL('../../../cli/bin/trunkline.js', import.meta.url));

/** A running process and what it has written so far. */
export class RunningCommand {
  out = '';
  err = '';
  /** Exit code, or the signal that ended it. */
  readonly exited: Promise<number | NodeJS.Signals>;
  ended: number | NodeJS.Signals | undefined;

  constructor(readonly child: ChildProcess) {
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.out += text;
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.err += text;
    });
    this.exited = new Promise((resolve) => {
      child.once('close', (code, signal) => {
        this.ended = signal ?? code ?? -1;
        resolve(this.ended);
      });
    });
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** Whole lines of standard output. */
  get lines(): string[] {
    return this.out.split('\n').slice(0, -1);
  }

  /** Lines of standard output that are JSON objects. */
  get objects(): Record<string, unknown>[] {
    return this.lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
  }

  until(condition: () => boolean, what: string): Promise<void> {
    return until(() => {
      if (condition()) return true;
      if (this.ended === undefined) return false;
      throw new Error(`ended with ${this.ended} before ${what}\nstdout: ${this.out}\nstderr: ${this.err}`);
    }, what).catch((error: Error) => {
      throw new Error(`${error.message}\nstdout: ${this.out}\nstderr: ${this.err}`);
    });
  }

  kill(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | NodeJS.Signals> {
    this.child.kill(signal);
    return this.exited;
  }
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Standard input; without it there is none. */
  readonly input?: string | Uint8Array;
  /** Standard input stays open behind `input`, for the test to go on with. */
  readonly open?: boolean;
  /** Killed after so long, ms: a command that hangs must not hang its test. Default: with the test. */
  readonly limit?: number;
}

/** Longest that a command of a test may take, but for a dispatcher, ms. */
const LIMIT = 240_000;

/** How long one is left to end by itself when its test is over, ms. */
const GRACE = 2000;

/** What is killed writes no coverage. */
async function endOf(running: RunningCommand): Promise<void> {
  if (running.ended !== undefined) return;
  const late = setTimeout(() => running.child.kill('SIGKILL'), GRACE);
  await running.kill('SIGTERM');
  clearTimeout(late);
}

/** Starts a Node script; it does not outlive the test. */
export function runScript(context: TestContext, args: readonly string[], options: RunOptions = {}): RunningCommand {
  const env = { ...process.env, ...options.env };
  // the runner's own: a child would think that it is a test
  delete env.NODE_TEST_CONTEXT;
  const cwd = options.cwd ?? repository;
  const child = spawn(process.execPath, args, {
    env,
    cwd,
    stdio: [options.input === undefined && options.open !== true ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  // a process that ends before it has read everything is no error of the test
  child.stdin?.on('error', () => {});
  if (options.open !== true) child.stdin?.end(options.input);
  else if (options.input !== undefined) child.stdin?.write(options.input);
  const running = new RunningCommand(child);
  if (options.limit !== undefined) {
    const limit = setTimeout(() => {
      running.err += `killed: not done after ${options.limit} ms\n`;
      running.child.kill('SIGKILL');
    }, options.limit);
    limit.unref();
    running.exited.then(() => clearTimeout(limit));
  }
  context.after(() => endOf(running));
  return running;
}

/** Starts `trunkline`; it does not outlive the test. */
export function trunkline(context: TestContext, args: readonly string[], options: RunOptions = {}): RunningCommand {
  const limit = args[0] === 'dispatcher' ? {} : { limit: LIMIT };
  return runScript(context, [binary, ...args], { ...limit, ...options });
}

/** Whether a process is there and not only waiting to be reaped. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
