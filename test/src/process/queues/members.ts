import { connect, type Provider } from '@trunkline/publisher';
import { until } from '../../support/wait.js';
import type { Child } from '../fixtures/child.js';
import { quickTransport, World } from '../fixtures/world.js';
import type { Got } from './consumer-process.js';

export const CODE = 4001;

/** A member of a group in a process of its own. */
export class Member {
  constructor(readonly child: Child) {}

  static async start(world: World, options: { group?: string; window?: number; acks?: boolean } = {}): Promise<Member> {
    const { group = 'g', window = 10, acks = false } = options;
    const child = world.child('../queues/consumer-process.js');
    await child.call('open', world.address);
    await child.call('consume', CODE, group, window, acks);
    return new Member(child);
  }

  async got(): Promise<Got[]> {
    return (await this.child.call<{ got: Got[] }>('report')).got;
  }

  /** Waits until it got so many messages, and returns them. */
  async has(count: number): Promise<Got[]> {
    await until(async () => (await this.got()).length >= count, `a member has ${count} messages`);
    return this.got();
  }

  ack(count: number): Promise<string[]> {
    return this.child.call<string[]>('ack', count);
  }
}

/** A dispatcher with the queue 4001 on disk. */
export function queueWorld(options: object = {}, more: object = {}): Promise<World> {
  return World.start({ services: [{ code: CODE, kind: 'queue', ...options }], dataDirectory: 'data', ...more });
}

export function publisher({ address }: World): Promise<Provider> {
  return connect(address, { limits: { heartbeat: 500 }, transport: quickTransport() });
}

/** Publishes `from`..`to` as texts. */
export async function publishNumbers(provider: Provider, from: number, to: number): Promise<void> {
  const bodies = Array.from({ length: to - from + 1 }, (_, index) => ({ body: `${from + index}` }));
  await provider.publishMany(CODE, bodies);
}

/** The texts `from`..`to`. */
export function numbers(from: number, to: number): string[] {
  return Array.from({ length: to - from + 1 }, (_, index) => `${from + index}`);
}
