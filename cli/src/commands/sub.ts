import type { TrunklineError } from '@trunkline/proto';
import type {
  EndEvent,
  GapEvent,
  Message,
  StartOption,
  StatusEvent,
  SubscribeOptions,
  Subscription,
} from '@trunkline/subscriber/core';
import { type Command, exitHelp, type Input, integerOf } from '../command.js';
import { Exit, Failure, passedOn } from '../exit.js';
import { messageJson, messageLine, printable, toJson } from '../json.js';
import { complain, stdout } from '../output.js';
import { definedOnly, Watch, watchOptions } from '../watch.js';

export const sub: Command = {
  name: 'sub',
  summary: 'subscribe to a service and print what comes',
  operands: 'CODE',
  count: { least: 1, most: 1 },
  options: {
    params: { value: 'JSON', help: 'with the code, what identifies the request' },
    filter: { value: 'EXPR', help: "CEL over tag, key, attrs and body, such as 'attrs.price > 100.0'" },
    return: { value: 'NAME', help: 'return handler: broadcast, group, latest or one of the configuration' },
    group: { value: 'NAME', help: 'share the stream with the others of this group; means --return group' },
    rate: { value: 'N', help: 'most messages a second and key; means --return latest' },
    start: { value: 'WHERE', help: 'kept (default), live or after:SEQUENCE[@EPOCH]' },
    overflow: { value: 'POLICY', help: 'when this reader is slow: dropOldest, latest, disconnect or block' },
    ...watchOptions,
  },
  details: `With --json a message is {"code","sequence","generation","snapshot","tag","key","attrs","body"}: the body as JSON
where it is JSON, else as text where it is UTF-8, else {"base64": …}. Everything else is {"event": …}:
  status  state (live, stale, disconnected), reason, generation, sequence, epoch
  gap     count, first, last, reason
  error   code, message
  end     code, message, exit
Waits for a dispatcher that is not there, and subscribes again by itself when it comes back.

${exitHelp}`,
  run: (input: Input) => new Printer(input).run(),
};

function subscribeOptions(input: Input): SubscribeOptions {
  const group = input.text('group');
  const rate = input.integer('rate', 1, 0xffff_ffff);
  const handler = input.text('return') ?? (group !== undefined ? 'group' : rate !== undefined ? 'latest' : undefined);
  return definedOnly({
    params: input.params(),
    filter: input.text('filter'),
    return: handler,
    group,
    rate,
    start: startOf(input.text('start')),
    overflow: input.text('overflow'),
  }) as SubscribeOptions;
}

function startOf(text: string | undefined): StartOption | undefined {
  if (text === undefined || text === 'kept' || text === 'live') return text;
  const [, after, epoch] = /^after:(\d+)(?:@((?:[0-9a-f]{2})+))?$/.exec(text) ?? [];
  if (after === undefined) {
    throw new Failure(Exit.USAGE, `--start must be kept, live or after:SEQUENCE[@EPOCH], not ${JSON.stringify(text)}`);
  }
  const sequence = integerOf('--start after:', after, 0, Number.MAX_SAFE_INTEGER);
  return epoch === undefined ? { after: sequence } : { after: sequence, epoch: Buffer.from(epoch, 'hex') };
}

/** One subscription on its way to standard output. */
class Printer {
  private readonly code: number;
  private readonly options: SubscribeOptions;
  private readonly watch: Watch;
  private subscription: Subscription | undefined;
  private accepted = false;
  private seen = 0;

  constructor(input: Input) {
    this.code = input.code();
    this.options = subscribeOptions(input);
    this.watch = new Watch(input, 'sub');
  }

  run(): Promise<number> {
    const { watch } = this;
    return watch.run(
      () => this.subscribe(),
      () => this.status({ state: 'disconnected', reason: `waiting for a dispatcher at ${watch.where}`, generation: 0 }),
    );
  }

  private subscribe(): void {
    const { watch } = this;
    const subscription = watch.client.subscribe(this.code, this.options, (message) => this.message(message));
    this.subscription = subscription;
    subscription.on('accepted', () => {
      this.accepted = true;
      watch.answered();
    });
    subscription.on('status', (status) => this.status(status));
    subscription.on('gap', (gap) => this.gap(gap));
    subscription.on('error', (error) => this.error(error));
    subscription.on('end', (end) => this.end(end));
  }

  // ---- what comes ----

  private message(message: Message): Promise<void> | undefined {
    if (this.watch.over) return undefined;
    stdout.line(this.watch.json ? messageJson(message) : messageLine(message));
    if (++this.seen >= this.watch.most) this.watch.finish(Exit.OK);
    // a slow reader holds back the credit, so that the overflow policy of the service decides
    return stdout.full ? stdout.room() : undefined;
  }

  private event(fields: object, line: string): void {
    if (!this.watch.over) stdout.line(this.watch.json ? toJson(fields) : `-- ${printable(line)}`);
  }

  private status({ state, reason, generation }: StatusEvent): void {
    if (state !== 'disconnected') this.watch.answered();
    else if (this.accepted) this.watch.waitAtMost();
    const { sequence = 0, epoch = new Uint8Array(0) } = this.subscription ?? {};
    const place = { sequence, epoch: Buffer.from(epoch).toString('hex') };
    this.event(
      { event: 'status', state, reason, generation, ...place },
      `status: ${state}${reason === '' ? '' : ` (${reason})`}`,
    );
  }

  private gap({ count, first, last, reason }: GapEvent): void {
    const many = count === 0 ? 'some' : count;
    const range = first === 0 ? '' : `, ${first}..${last}`;
    this.event({ event: 'gap', count, first, last, reason }, `gap: ${many} left out${range} (${reason})`);
  }

  private error({ code, message, position }: TrunklineError): void {
    if (this.watch.over) return;
    if (this.watch.json) this.event({ event: 'error', code, message, position }, '');
    complain(`${code}: ${message}`);
  }

  private end({ code, message, exit }: EndEvent): void {
    if (this.watch.over) return;
    const normal = code === 'COMPLETED' || code === 'EXITED';
    if (this.watch.json || normal) {
      const told = exit === undefined ? '' : ` with exit code ${exit}`;
      this.event({ event: 'end', code, message, exit }, `end: ${code}${told}${message === '' ? '' : ` (${message})`}`);
    }
    if (normal) this.watch.finish(passedOn(exit ?? 0));
    else this.failed(code, message);
  }

  private failed(code: string, message: string): void {
    // a refusal was told by the error event before
    if (this.accepted || this.watch.client.state === 'closed') complain(`the stream ended: ${code}: ${message}`);
    this.watch.finish(this.accepted ? Exit.FAILED : Exit.REFUSED);
  }
}
