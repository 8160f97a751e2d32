import type { TrunklineError } from '@trunkline/proto';
import type { Client, ConsumeOptions, Consumption, QueueMessage } from '@trunkline/subscriber/core';
import { connectionOptions, openClient } from '../client.js';
import { type Command, type Input, integerOf } from '../command.js';
import { Exit, Failure } from '../exit.js';
import { messageJson, messageLine, toJson } from '../json.js';
import { complain, stdout } from '../output.js';
import { onSignal } from '../signals.js';

export const consume: Command = {
  name: 'consume',
  summary: 'read a queue, print and acknowledge what comes',
  operands: 'CODE',
  count: { least: 1, most: 1 },
  options: {
    group: { value: 'NAME', help: 'share the messages with the others of this group; left out: read alone' },
    filter: { value: 'EXPR', help: "CEL over tag, key, attrs and body; the group's" },
    window: { value: 'N', help: 'most messages that are delivered and not acknowledged; default 256' },
    start: { value: 'WHERE', help: 'where a new group begins: earliest, latest or after:SEQUENCE' },
    count: { value: 'N', help: 'end after N messages' },
    idle: { value: 'DURATION', help: 'end when no message came for so long' },
    json: { help: 'one JSON object a line' },
    ...connectionOptions,
  },
  details: `A message is acknowledged when it is printed. With --json a message is as \`sub --json\` prints it, with
"deliveries", how often it was delivered; everything else is {"event": gap, end or error}.
Exit codes: 1 the queue is gone, 3 refused.`,
  run: (input: Input) => new Reader(input).run(),
};

class Reader {
  private readonly code: number;
  private readonly json: boolean;
  private readonly most: number;
  private readonly idle: number | undefined;
  private readonly options: ConsumeOptions;
  private readonly client: Client;
  private seen = 0;
  private quiet: NodeJS.Timeout | undefined;
  private finish: (exit: number) => void = () => {};

  constructor(input: Input) {
    this.code = input.code();
    this.json = input.flag('json');
    this.most = input.integer('count', 1) ?? Number.POSITIVE_INFINITY;
    this.idle = input.duration('idle');
    const fields = {
      group: input.text('group'),
      filter: input.text('filter'),
      window: input.integer('window', 1, 65_536),
      start: startOf(input.text('start')),
    };
    this.options = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
    this.client = openClient(input, 'consume');
  }

  async run(): Promise<number> {
    const finished = new Promise<number>((resolve) => {
      this.finish = resolve;
    });
    const off = onSignal(() => this.finish(Exit.OK));
    stdout.whenClosed(() => this.finish(Exit.OK));
    this.client.on('state', (state, reason) => {
      if (state !== 'closed' || reason?.code === 'CLOSED') return;
      complain(`${reason?.code}: ${reason?.message}`);
      this.finish(Exit.FAILED);
    });
    const consumption = this.client.consume(this.code, this.options, (message) => this.print(message));
    this.listen(consumption);
    this.restartIdle();
    try {
      return await finished;
    } finally {
      off();
      clearTimeout(this.quiet);
      await consumption.close();
      await this.client.close();
    }
  }

  private listen(consumption: Consumption): void {
    let accepted = false;
    consumption.accepted.then(
      () => {
        accepted = true;
      },
      () => {},
    );
    consumption.on('gap', ({ count, first, last, reason }) => this.event({ event: 'gap', count, first, last, reason }));
    consumption.on('error', ({ code, message }: TrunklineError) => this.event({ event: 'error', code, message }));
    consumption.on('end', ({ code, message }) => {
      if (this.json) this.event({ event: 'end', code, message });
      else complain(`${code}: ${message}`);
      this.finish(accepted ? Exit.FAILED : Exit.REFUSED);
    });
  }

  private restartIdle(): void {
    if (this.idle === undefined) return;
    clearTimeout(this.quiet);
    this.quiet = setTimeout(() => this.finish(Exit.OK), this.idle);
  }

  private event(fields: Readonly<Record<string, unknown>>): void {
    if (this.json) stdout.line(toJson(fields));
    else complain(Object.values(fields).join(' '));
  }

  private print(message: QueueMessage): Promise<void> | undefined {
    // held until the end, which gives it back to the group
    if (this.seen >= this.most) return new Promise(() => {});
    this.seen++;
    const { deliveries } = message;
    if (this.json) stdout.line(`{"deliveries":${deliveries},${messageJson(message).slice(1)}`);
    else stdout.line(deliveries > 1 ? `${messageLine(message)}  (delivery ${deliveries})` : messageLine(message));
    this.restartIdle();
    if (this.seen < this.most) return stdout.full ? stdout.room() : undefined;
    // the answer says that the message does not come again
    return message.ack().then(() => this.finish(Exit.OK));
  }
}

function startOf(text: string | undefined): ConsumeOptions['start'] | undefined {
  if (text === undefined || text === 'earliest' || text === 'latest') return text;
  const [, after] = /^after:(\d+)$/.exec(text) ?? [];
  if (after !== undefined) return { after: integerOf('--start after:', after, 0, Number.MAX_SAFE_INTEGER) };
  throw new Failure(Exit.USAGE, `--start must be earliest, latest or after:SEQUENCE, not ${JSON.stringify(text)}`);
}
