import { type Provider, connect as publish } from '@trunkline/publisher';
import { type Client, type Consumption, type QueueMessage, TrunklineError } from '@trunkline/subscriber';
import { until } from '../../support/wait.js';
import { quickTransport, type World } from '../fixtures/world.js';
import type { QueueBook } from './book.js';

/** Publishers wait for consumers that are so many messages behind: the queue has a bound. */
const MOST_BEHIND = 20_000;

/** Publishes without end, so many at a time, until it is stopped. */
export class Publisher {
  private running = true;
  private next = 1;
  private inFlight = 0;

  private constructor(
    private readonly provider: Provider,
    private readonly name: string,
    private readonly code: number,
    private readonly book: QueueBook,
    private readonly size: number,
  ) {}

  static async start(
    { address }: World,
    book: QueueBook,
    options: { name: string; code: number; atOnce?: number; size?: number },
  ): Promise<Publisher> {
    const provider = await publish(address, { limits: { heartbeat: 500 }, transport: quickTransport() });
    const { name, code, atOnce = 200, size = 0 } = options;
    const publisher = new Publisher(provider, name, code, book, size);
    for (let index = 0; index < atOnce; index++) publisher.one();
    return publisher;
  }

  private one(): void {
    const { book, name, size } = this;
    const body = `${name}.${this.next++}`;
    this.inFlight++;
    const again = () => {
      this.inFlight--;
      if (!this.running) return;
      const next = () => this.running && this.one();
      // a turn between them, so that others have theirs
      if (book.backlog < MOST_BEHIND) setImmediate(next);
      else setTimeout(next, 200);
    };
    this.provider.publish(this.code, size === 0 ? body : `${body} ${'x'.repeat(size)}`).then(
      (sequence) => {
        book.confirm(body, sequence);
        again();
      },
      (error: unknown) => {
        const code = error instanceof TrunklineError ? error.code : undefined;
        if (code === 'DISCONNECTED' || code === 'TIMEOUT') book.unknown.add(body);
        else book.refusals.push(error);
        again();
      },
    );
  }

  /** Waits until it knows of everything that it published. */
  async finish(): Promise<void> {
    this.running = false;
    await until(() => this.inFlight === 0, `publisher ${this.name} has all its answers`, 30_000);
    await this.provider.close();
  }
}

/** A member that acknowledges what it gets, a while later or at once. */
export function consumer(
  client: Client,
  book: QueueBook,
  { code, group, window }: { code: number; group: string; window: number },
): Consumption {
  return client.consume(code, { group, window, ack: 'manual' }, (message: QueueMessage) => {
    book.deliver(group, message, message.text().split(' ')[0]!);
    const { sequence } = message;
    const ack = () =>
      message.ack().then(
        () => book.ack(group, sequence),
        () => book.unanswered++,
      );
    if (sequence % 3 === 0) setTimeout(ack, sequence % 20);
    else void ack();
  });
}
