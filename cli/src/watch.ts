import type { Client } from '@trunkline/subscriber/core';
import { connectionOptions, openClient } from './client.js';
import type { Input, Options } from './command.js';
import { Exit } from './exit.js';
import { complain, stdout } from './output.js';
import { onSignal } from './signals.js';

/** A dispatcher that has not answered for so long is worth a line. */
export const QUIET_MS = 1000;

export const watchOptions = {
  count: { value: 'N', help: 'end after N messages' },
  timeout: { value: 'DURATION', help: 'give up after so long without an answer or without the dispatcher' },
  json: { help: 'one JSON object a line' },
  ...connectionOptions,
} as const satisfies Options;

/**
 * What commands have around them that print what comes: they end by themselves, by a signal, when the reader of the
 * output goes away, or after the time given without an answer.
 */
export class Watch {
  readonly client: Client;
  readonly json: boolean;
  /** Most messages that are printed. */
  readonly most: number;
  /** Nothing is printed any more. */
  over = false;
  private readonly timeout: number | undefined;
  private giveUp: NodeJS.Timeout | undefined;
  private readonly finished: Promise<number>;
  private resolve: (exit: number) => void = () => {};

  constructor(input: Input, name: string) {
    this.json = input.flag('json');
    this.most = input.integer('count', 1) ?? Number.POSITIVE_INFINITY;
    this.timeout = input.duration('timeout');
    this.finished = new Promise((resolve) => {
      this.resolve = resolve;
    });
    this.client = openClient(input, name);
  }

  /** The address, or the addresses, for people. */
  get where(): string {
    return this.client.connection.address;
  }

  /**
   * @param quiet called once if there is no dispatcher at the beginning
   * @param leave what is to be done before the connection is closed
   */
  async run(begin: () => void, quiet: () => void, leave?: () => Promise<void>): Promise<number> {
    const off = onSignal(() => this.finish(Exit.OK));
    const unanswered = setTimeout(() => {
      if (this.client.state === 'disconnected' && !this.over) quiet();
    }, QUIET_MS);
    stdout.whenClosed(() => this.finish(Exit.OK));
    this.waitAtMost();
    try {
      begin();
      return await this.finished;
    } finally {
      this.over = true;
      clearTimeout(unanswered);
      clearTimeout(this.giveUp);
      await leave?.();
      await this.client.close();
      off();
    }
  }

  finish(exit: number): void {
    this.over = true;
    this.resolve(exit);
  }

  /** From now on the dispatcher has the time given to answer, or to come back. */
  waitAtMost(): void {
    if (this.timeout === undefined) return;
    clearTimeout(this.giveUp);
    this.giveUp = setTimeout(() => {
      complain(`TIMEOUT: no answer from ${this.where} in ${this.timeout} ms`);
      this.finish(Exit.TIMEOUT);
    }, this.timeout);
  }

  answered(): void {
    clearTimeout(this.giveUp);
  }
}

export function definedOnly(fields: Readonly<Record<string, unknown>>): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
