import { createInterface } from 'node:readline';
import { TrunklineError } from '@trunkline/proto';
import { openConnection } from '@trunkline/proto/connect';
import { Provider, type PublishMessage } from '@trunkline/publisher/core';
import { addressesOf, connectionOptions, connectOptions } from '../client.js';
import type { Command, Input } from '../command.js';
import { Exit, Failure } from '../exit.js';
import { complain } from '../output.js';
import { onSignal } from '../signals.js';

const DEFAULT_IN_FLIGHT = 2048;
const AGAIN_MS = 500;

export const publish: Command = {
  name: 'publish',
  summary: 'publish each line of standard input into a queue',
  operands: 'CODE',
  count: { least: 1, most: 1 },
  options: {
    json: { help: 'each line is {"body", "tag", "key", "attrs", "ttlMs", "delayMs"}, all of them optional' },
    key: { value: 'KEY', help: 'key of all messages that have none of their own' },
    tag: { value: 'TAG', help: 'tag of all messages that have none of their own' },
    'in-flight': { value: 'N', help: `most messages without a confirmation; default ${DEFAULT_IN_FLIGHT}` },
    retry: { help: 'try again what is refused because the queue or the store is full' },
    timeout: { value: 'DURATION', help: 'how long to wait for the confirmation of a message; default 5m' },
    ...connectionOptions,
  },
  details: `Ends with the input, when everything is confirmed. Waits for a dispatcher that is not there; what is not
confirmed when it goes away is sent again when it comes back, and stored once. In JSON a text as body is published as
text, {"base64": …} as bytes, anything else as JSON. Exit codes: 2 a line is no JSON, 3 something was refused, 4 no
confirmation in time; it ends with the first of these.`,
  run: (input: Input) => new Publisher(input).run(),
};

class Publisher {
  private readonly code: number;
  private readonly json: boolean;
  private readonly retry: boolean;
  private readonly most: number;
  private readonly common: PublishMessage;
  private readonly timeoutMs: number | undefined;
  private readonly provider = new Provider();
  private lines = 0;
  private stored = 0;
  private open = 0;
  private failure: Failure | undefined;
  private wake: () => void = () => {};

  constructor(private readonly input: Input) {
    this.code = input.code();
    this.json = input.flag('json');
    this.retry = input.flag('retry');
    this.most = input.integer('in-flight', 1, 65_536) ?? DEFAULT_IN_FLIGHT;
    this.timeoutMs = input.duration('timeout');
    const key = input.text('key');
    const tag = input.text('tag');
    this.common = { ...(key !== undefined && { key }), ...(tag !== undefined && { tag }) };
  }

  async run(): Promise<number> {
    const { provider, input } = this;
    provider.on('error', (error) => complain(`${error.code}: ${error.message}`));
    provider.attach(openConnection(addressesOf(input), connectOptions(input, 'publish')));
    const reader = createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY });
    const off = onSignal(() => {
      this.failure ??= new Failure(Exit.OK, '');
      reader.close();
      this.wake();
    });
    try {
      for await (const line of reader) {
        this.publish(this.messageOf(line));
        while (this.open >= this.most && this.failure === undefined) await this.change();
        if (this.failure !== undefined) break;
      }
      while (this.open > 0 && this.failure === undefined) await this.change();
    } finally {
      off();
      reader.close();
      process.stdin.destroy();
      complain(`${this.stored} of ${this.lines} messages published`);
      await provider.close();
    }
    if (this.failure === undefined || this.failure.exit === Exit.OK) return Exit.OK;
    throw this.failure;
  }

  private change(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve;
    });
  }

  private messageOf(line: string): PublishMessage {
    this.lines++;
    if (!this.json) return { ...this.common, body: line };
    let fields: unknown;
    try {
      fields = JSON.parse(line);
    } catch (error) {
      throw new Failure(Exit.USAGE, `line ${this.lines}: ${(error as Error).message}`);
    }
    if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) {
      throw new Failure(Exit.USAGE, `line ${this.lines}: not a JSON object`);
    }
    const { body, ...meta } = fields as { body?: unknown };
    return { ...this.common, ...meta, ...bodyOf(body) };
  }

  private publish(message: PublishMessage): void {
    this.open++;
    const { lines: line, timeoutMs } = this;
    const { body, ...meta } = message;
    const more = timeoutMs === undefined ? {} : { timeoutMs };
    this.provider.publish(this.code, body, { ...meta, ...more }).then(
      () => {
        this.open--;
        this.stored++;
        this.wake();
      },
      (error: unknown) => this.failed(message, line, error),
    );
  }

  private failed(message: PublishMessage, line: number, error: unknown): void {
    const code = error instanceof TrunklineError ? error.code : undefined;
    if (this.retry && (code === 'QUEUE_FULL' || code === 'STORE_FULL') && this.failure === undefined) {
      setTimeout(() => {
        this.open--;
        this.publish(message);
      }, AGAIN_MS);
      return;
    }
    this.open--;
    const exit = code === 'TIMEOUT' ? Exit.TIMEOUT : code === 'META_INVALID' ? Exit.USAGE : Exit.REFUSED;
    const text = error instanceof Error ? error.message : String(error);
    this.failure ??= new Failure(exit, `line ${line}: ${code ?? 'FAILED'}: ${text}`);
    this.wake();
  }
}

function bodyOf(body: unknown): { body?: unknown } {
  if (body === undefined) return {};
  if (typeof body !== 'object' || body === null || !('base64' in body)) return { body };
  return { body: Uint8Array.from(Buffer.from(String(body.base64), 'base64')) };
}
