import type { TrunklineError } from '@trunkline/proto';
import type { ConsumeOptions, Consumption, QueueMessage } from '@trunkline/subscriber/core';
import { type Command, type Input, integerOf } from '../command.js';
import { Exit, Failure } from '../exit.js';
import { messageJson, messageLine, toJson } from '../json.js';
import { complain, stdout } from '../output.js';
import { definedOnly, Watch, watchOptions } from '../watch.js';

const DEFAULT_WINDOW = 256;
/** How long the end waits for what is printed and not written yet. */
const LAST_LINES_MS = 1000;

export const consume: Command = {
  name: 'consume',
  summary: 'read a queue, print and acknowledge what comes',
  operands: 'CODE',
  count: { least: 1, most: 1 },
  options: {
    group: { value: 'NAME', help: 'share the messages with the others of this group; left out: read alone' },
    filter: { value: 'EXPR', help: "CEL over tag, key, attrs and body; the group's" },
    window: { value: 'N', help: `most messages that are delivered and not acknowledged; default ${DEFAULT_WINDOW}` },
    start: { value: 'WHERE', help: 'where a new group begins: earliest, latest or after:SEQUENCE' },
    idle: { value: 'DURATION', help: 'end when the dispatcher was there and no message came for so long' },
    ...watchOptions,
  },
  details: `A message is acknowledged when its line is written; what is not goes back to the group. With --json a message is
as \`sub --json\` prints it, with "deliveries", how often it was delivered; everything else is {"event": gap, error or end}.
Waits for a dispatcher that is not there, and goes on when it comes back.
Exit codes: 1 the queue is gone, or the dispatcher will not have us, 3 refused, 4 no answer in time.`,
  run: (input: Input) => new Reader(input).run(),
};

class Reader {
  private readonly code: number;
  private readonly idle: number | undefined;
  private readonly options: ConsumeOptions;
  private readonly watch: Watch;
  private consumption: Consumption | undefined;
  private seen = 0;
  private quiet: NodeJS.Timeout | undefined;

  constructor(input: Input) {
    this.code = input.code();
    this.idle = input.duration('idle');
    const window = input.integer('window', 1, 65_536) ?? DEFAULT_WINDOW;
    const fields = {
      group: input.text('group'),
      filter: input.text('filter'),
      window,
      // one write has many messages, and each of them waits for it
      concurrency: window,
      start: startOf(input.text('start')),
    };
    this.options = definedOnly(fields);
    this.watch = new Watch(input, 'consume');
  }

  run(): Promise<number> {
    const { watch } = this;
    watch.client.on('state', (state, reason) => {
      if (state !== 'closed' || reason?.code === 'CLOSED') return;
      complain(`${reason?.code}: ${reason?.message}`);
      watch.finish(Exit.FAILED);
    });
    return watch.run(
      () => this.begin(),
      () => complain(`waiting for a dispatcher at ${watch.where}`),
      () => this.leave(),
    );
  }

  private begin(): void {
    const { watch } = this;
    const consumption = watch.client.consume(this.code, this.options, (message) => this.print(message));
    this.consumption = consumption;
    let accepted = false;
    consumption.on('state', (state) => {
      clearTimeout(this.quiet);
      if (state === 'active') {
        accepted = true;
        watch.answered();
        this.restartIdle();
      } else if (state === 'disconnected' && !watch.over) {
        complain(`disconnected: waiting for a dispatcher at ${watch.where}`);
        watch.waitAtMost();
      }
    });
    consumption.on('gap', ({ count, first, last, reason }) => this.event({ event: 'gap', count, first, last, reason }));
    consumption.on('error', ({ code, message }: TrunklineError) => this.event({ event: 'error', code, message }));
    consumption.on('end', ({ code, message }) => {
      if (watch.json) this.event({ event: 'end', code, message });
      else complain(`${code}: ${message}`);
      watch.finish(accepted ? Exit.FAILED : Exit.REFUSED);
    });
  }

  /** What is printed by now is acknowledged if it can be written; everything else goes back to the group. */
  private async leave(): Promise<void> {
    clearTimeout(this.quiet);
    let limit: NodeJS.Timeout | undefined;
    const tooLate = new Promise((resolve) => {
      limit = setTimeout(resolve, LAST_LINES_MS);
    });
    await Promise.race([stdout.written().then(nextTurn), tooLate]);
    clearTimeout(limit);
    await this.consumption?.close();
  }

  private restartIdle(): void {
    if (this.idle === undefined) return;
    clearTimeout(this.quiet);
    this.quiet = setTimeout(() => this.watch.finish(Exit.OK), this.idle);
  }

  private event(fields: Readonly<Record<string, unknown>>): void {
    if (this.watch.json) stdout.line(toJson(fields));
    else complain(Object.values(fields).join(' '));
  }

  private async print(message: QueueMessage): Promise<void> {
    const { watch } = this;
    // held until the end, which gives it back to the group
    if (watch.over || this.seen >= watch.most) return never;
    this.seen++;
    const { deliveries } = message;
    if (watch.json) stdout.line(`{"deliveries":${deliveries},${messageJson(message).slice(1)}`);
    else stdout.line(deliveries > 1 ? `${messageLine(message)}  (delivery ${deliveries})` : messageLine(message));
    this.restartIdle();
    const last = this.seen >= watch.most;
    if (!(await stdout.written())) return never;
    if (!last) return;
    // the ones before it first; and the answer says that none of them comes again
    await nextTurn();
    await message.ack().catch((error: TrunklineError) => complain(`message ${message.sequence}: ${error.message}`));
    watch.finish(Exit.OK);
  }
}

const never = new Promise<void>(() => {});

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function startOf(text: string | undefined): ConsumeOptions['start'] | undefined {
  if (text === undefined || text === 'earliest' || text === 'latest') return text;
  const [, after] = /^after:(\d+)$/.exec(text) ?? [];
  if (after !== undefined) return { after: integerOf('--start after:', after, 0, Number.MAX_SAFE_INTEGER) };
  throw new Failure(Exit.USAGE, `--start must be earliest, latest or after:SEQUENCE, not ${JSON.stringify(text)}`);
}
