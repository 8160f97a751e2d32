import { TrunklineError } from '@trunkline/proto';
import { openConnection } from '@trunkline/proto/connect';
import { Provider, type PublishMessage } from '@trunkline/publisher/core';
import { addressesOf, connectionOptions, connectOptions } from '../client.js';
import type { Command, Input } from '../command.js';
import { Exit, Failure } from '../exit.js';
import { LineSplitter } from '../lines.js';
import { complain } from '../output.js';
import { publishedLine } from '../published-line.js';
import { onSignal } from '../signals.js';
import { QUIET_MS } from '../watch.js';

const DEFAULT_IN_FLIGHT = 2048;
/** Longest line, bytes: no dispatcher takes more. */
const MAX_LINE = 64 * 1024 * 1024;
const AGAIN_MS = 500;
/** How long a signal waits for confirmations that are under way. */
const LAST_ANSWERS_MS = 2000;
const CARRIAGE_RETURN = 0x0d;

export const publish: Command = {
  name: 'publish',
  summary: 'publish each line of standard input into a queue',
  operands: 'CODE',
  count: { least: 1, most: 1 },
  options: {
    json: { help: 'each line is {"body", "tag", "key", "attrs", "contentType", "ttlMs", "delayMs"}, all optional' },
    key: { value: 'KEY', help: 'key of all messages that have none of their own' },
    tag: { value: 'TAG', help: 'tag of all messages that have none of their own' },
    'in-flight': { value: 'N', help: `most messages without a confirmation; default ${DEFAULT_IN_FLIGHT}` },
    retry: { help: 'try again what is refused because the queue or the store is full; it may come behind later lines' },
    timeout: { value: 'DURATION', help: 'how long to wait for the confirmation of a message; default 5m' },
    ...connectionOptions,
  },
  details: `Ends with the input, when everything is confirmed. Waits for a dispatcher that is not there; what is not
confirmed when it goes away is sent again when it comes back, and stored once. A line is published byte by byte, without
its line feed. In JSON a text as body is published as text, {"base64": …} as bytes, anything else as JSON; what
\`consume --json\` prints can be published again.
The first line that is wrong, or refused, ends the reading; the lines before it are waited for. Exit codes: 1 the
dispatcher will not have us, 2 a line is wrong, 3 something was refused, 4 no confirmation in time.`,
  run: (input: Input) => new Publisher(input).run(),
};

class Publisher {
  private readonly code: number;
  private readonly json: boolean;
  private readonly retry: boolean;
  private readonly most: number;
  private readonly common: PublishMessage;
  private readonly more: { readonly timeoutMs?: number };
  private readonly provider = new Provider();
  private readonly splitter = new LineSplitter(MAX_LINE);
  private readonly retries = new Set<NodeJS.Timeout>();
  private lines = 0;
  private stored = 0;
  private open = 0;
  private failure: Failure | undefined;
  /** Nothing more is read. */
  private stopped = false;
  /** Nothing more is waited for, either. */
  private over = false;
  private wake: () => void = () => {};

  constructor(private readonly input: Input) {
    this.code = input.code();
    this.json = input.flag('json');
    this.retry = input.flag('retry');
    this.most = input.integer('in-flight', 1, 65_536) ?? DEFAULT_IN_FLIGHT;
    const timeoutMs = input.duration('timeout');
    this.more = timeoutMs === undefined ? {} : { timeoutMs };
    const key = input.text('key');
    const tag = input.text('tag');
    this.common = { ...(key !== undefined && { key }), ...(tag !== undefined && { tag }) };
  }

  async run(): Promise<number> {
    const { provider, input } = this;
    let last: NodeJS.Timeout | undefined;
    provider.on('error', (error) => complain(`${error.code}: ${error.message}`));
    provider.on('state', (state) => {
      if (state !== 'closed' || this.over) return;
      const { code, message } = provider.closedBy!;
      this.end(new Failure(Exit.FAILED, `${code}: ${message}`));
    });
    const quiet = setTimeout(() => {
      const nobody = provider.state === 'disconnected' && !this.over;
      if (nobody) complain(`waiting for a dispatcher at ${provider.connection!.address}`);
    }, QUIET_MS);
    const off = onSignal(() => {
      this.stopReading();
      last = setTimeout(() => this.end(), provider.state === 'connected' ? LAST_ANSWERS_MS : 0);
    });
    try {
      provider.attach(openConnection(addressesOf(input), connectOptions(input, 'publish')));
      await this.read();
      while (this.open > 0 && !this.over) await this.change();
    } finally {
      this.end();
      off();
      clearTimeout(quiet);
      clearTimeout(last);
      for (const timer of this.retries) clearTimeout(timer);
      process.stdin.destroy();
      complain(`${this.stored} of ${this.lines} messages published`);
      await provider.close();
    }
    if (this.failure !== undefined) throw this.failure;
    return Exit.OK;
  }

  private end(failure?: Failure): void {
    this.failure ??= failure;
    this.over = true;
    this.stopReading();
  }

  private stopReading(): void {
    this.stopped = true;
    // an input that says nothing more must not keep us
    process.stdin.destroy();
    this.wake();
  }

  private fail(failure: Failure): void {
    this.failure ??= failure;
    this.stopReading();
  }

  private change(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve;
    });
  }

  // ---- the input ----

  private async read(): Promise<void> {
    try {
      for await (const chunk of process.stdin as AsyncIterable<Uint8Array>) {
        for (const line of this.split(chunk)) {
          await this.take(line);
          if (this.stopped) return;
        }
        if (this.stopped) return;
      }
    } catch (error) {
      // the reading of a stream that is destroyed ends like this
      if (this.stopped) return;
      this.fail(new Failure(Exit.FAILED, `cannot read the input: ${(error as Error).message}`));
      return;
    }
    const rest = this.splitter.rest();
    if (rest !== undefined) await this.take(rest);
  }

  private split(chunk: Uint8Array): readonly Uint8Array[] {
    try {
      return this.splitter.push(chunk);
    } catch (error) {
      this.fail(new Failure(Exit.USAGE, `behind line ${this.lines}: ${(error as Error).message}`));
      return [];
    }
  }

  /** One line, when there is room for it. */
  private async take(line: Uint8Array): Promise<void> {
    await this.room();
    if (this.stopped) return;
    this.lines++;
    const end = line.length - (line.at(-1) === CARRIAGE_RETURN ? 1 : 0);
    const bytes = line.subarray(0, end);
    try {
      this.publish(
        this.json ? { ...this.common, ...publishedLine(bytes) } : { ...this.common, body: bytes },
        this.lines,
      );
    } catch (error) {
      this.fail(new Failure(Exit.USAGE, `line ${this.lines}: ${(error as Error).message}`));
    }
  }

  private async room(): Promise<void> {
    while (this.open >= this.most && !this.stopped) await this.change();
    if (this.stopped) return;
    let room = false;
    const came = () => {
      room = true;
      this.wake();
    };
    // the end of the provider ends the reading, too
    this.provider.drained().then(came, came);
    while (!room && !this.stopped) await this.change();
  }

  // ---- what becomes of it ----

  private publish(message: PublishMessage, line: number): void {
    this.open++;
    const { body, ...meta } = message;
    this.provider.publish(this.code, body, { ...meta, ...this.more }).then(
      () => {
        this.open--;
        this.stored++;
        this.wake();
      },
      (error: unknown) => this.failed(message, line, error),
    );
  }

  private failed(message: PublishMessage, line: number, error: unknown): void {
    const code = error instanceof TrunklineError ? error.code : 'FAILED';
    if (this.retry && (code === 'QUEUE_FULL' || code === 'STORE_FULL') && !this.over) {
      const timer = setTimeout(() => {
        this.retries.delete(timer);
        this.open--;
        this.publish(message, line);
      }, AGAIN_MS);
      this.retries.add(timer);
      return;
    }
    this.open--;
    const text = error instanceof Error ? error.message : String(error);
    // at the end the count says what is not confirmed
    if (!this.over) this.fail(new Failure(exitOf(code), `line ${line}: ${code}: ${text}`));
    this.wake();
  }
}

const lost: readonly string[] = ['DISCONNECTED', 'CLOSED', 'FAILED'];
const wrong: readonly string[] = ['META_INVALID', 'BODY_INVALID', 'OPTION_INVALID'];

function exitOf(code: string): number {
  if (code === 'TIMEOUT') return Exit.TIMEOUT;
  if (lost.includes(code)) return Exit.FAILED;
  return wrong.includes(code) ? Exit.USAGE : Exit.REFUSED;
}
