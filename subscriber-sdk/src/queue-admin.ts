import type { Message } from './message.js';
import type { RequestOptions } from './options.js';

/** Options of a queue as in a configuration file; what is left out has its default. */
export interface QueueOptions {
  readonly storage?: 'memory' | 'disk';
  readonly maxMessages?: number;
  /** Bytes, or a text such as `"64MiB"`. */
  readonly maxBytes?: number | string;
  /** A duration such as `"24h"`; `"0s"`: no bound. */
  readonly maxAge?: string;
  /** A duration: messages that every group is past stay for so long, for groups that come later. */
  readonly retain?: string;
  readonly full?: 'dropOldest' | 'refuse';
  /** A duration; `"0s"`: never. */
  readonly ackTimeout?: string;
  /** 0: no bound. */
  readonly maxDeliveries?: number;
  /** Service code of the dead letter queue. */
  readonly deadLetter?: number;
  readonly maxMessage?: number | string;
}

export interface GroupInfo {
  readonly name: string;
  /** Everything up to this sequence is done with. */
  readonly position: number;
  /** Messages that wait for a member. */
  readonly waiting: number;
  /** Messages that members hold. */
  readonly outstanding: number;
  readonly online: boolean;
  readonly members: readonly { window: number; outstanding: number; delivered: number; acked: number }[];
  readonly filter: string;
  readonly redelivered: number;
  readonly deadLettered: number;
  readonly expired: number;
}

export interface QueueInfo {
  readonly code: number;
  readonly name: string;
  readonly declaredBy: 'configuration' | 'admin';
  readonly storage: 'memory' | 'disk';
  readonly messages: number;
  readonly bytes: number;
  readonly first: number;
  readonly last: number;
  readonly oldestAgeMs: number;
  readonly groups: readonly GroupInfo[];
  readonly privateConsumers: number;
}

/**
 * A message as `peek` shows it: its body as JSON, as `text` (also JSON with integers of 16 digits and more, which stay
 * exact), or as `hex`.
 */
export interface PeekedMessage {
  readonly sequence: number;
  readonly ageMs: number;
  readonly tag?: string;
  readonly key?: string;
  readonly attrs?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly text?: string;
  readonly hex?: string;
  /** Bytes of a body of more than 1 MiB; `hex` is how it begins. */
  readonly size?: number;
}

type Request = (code: number, options: RequestOptions) => Promise<Message>;

/**
 * Declares, shows and changes the queues of the dispatcher. Everything resolves when it is stored.
 * @throws from every method: TrunklineError UNKNOWN_SERVICE, PARAMS_INVALID, OPTION_INVALID, STORE_FULL, STORE_FAILED,
 * TIMEOUT, CLOSED
 */
export class QueueAdmin {
  /** @internal `client.queues` */
  constructor(private readonly request: Request) {}

  private async ask<T>(params: object): Promise<T> {
    return (await this.request(0, { params })).json() as T;
  }

  /** Survives restarts of the dispatcher. Again for the same code: its options change. */
  async declare(code: number, options: QueueOptions = {}, name?: string): Promise<void> {
    await this.ask({ do: 'declareQueue', code, options, ...(name === undefined ? {} : { name }) });
  }

  /** With its messages and groups. False: there is no such queue. */
  async delete(code: number): Promise<boolean> {
    return (await this.ask<{ deleted: boolean }>({ do: 'deleteQueue', code })).deleted;
  }

  /** Forgets a group and its position, so that it holds back no message any more. */
  async deleteGroup(code: number, group: string): Promise<boolean> {
    return (await this.ask<{ deleted: boolean }>({ do: 'deleteGroup', code, group })).deleted;
  }

  /** Drops all messages; returns how many. */
  async purge(code: number): Promise<number> {
    return (await this.ask<{ purged: number }>({ do: 'purge', code })).purged;
  }

  /** Takes one message out. False: it is not there (any more). */
  async remove(code: number, sequence: number): Promise<boolean> {
    return (await this.ask<{ removed: boolean }>({ do: 'remove', code, sequence })).removed;
  }

  /** Has everything that a group's members hold, or that waits for its time, delivered again now; returns how many. */
  async redeliver(code: number, group: string): Promise<number> {
    return (await this.ask<{ redelivered: number }>({ do: 'redeliver', code, group })).redelivered;
  }

  /** Looks at messages without taking them: at most `limit` (default 10, most 1000) behind `after`. */
  async peek(code: number, options: { after?: number; limit?: number } = {}): Promise<readonly PeekedMessage[]> {
    return (await this.ask<{ items: PeekedMessage[] }>({ do: 'peek', code, ...options })).items;
  }

  async list(): Promise<readonly QueueInfo[]> {
    const queues: QueueInfo[] = [];
    for (let after: number | undefined = 0; after !== undefined; ) {
      const page: { items: QueueInfo[]; next?: number } = await this.ask({ show: 'queues', after });
      queues.push(...page.items);
      after = page.next;
    }
    return queues;
  }
}
