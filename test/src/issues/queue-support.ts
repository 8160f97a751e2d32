import type { Provider } from '@trunkline/publisher/core';
import type { ConsumeOptions, QueueMessage } from '@trunkline/subscriber/core';
import { QUEUE, settled, stored } from '../queues/bench.js';
import type { Parts } from './support.js';

export { QUEUE, queueParts, settled, stored, texts } from '../queues/bench.js';

/** Items `1` to `count`, stored. */
export async function items(parts: Parts, provider: Provider, count: number): Promise<void> {
  await settled(
    parts,
    provider.publishMany(
      QUEUE,
      Array.from({ length: count }, (_, index) => ({ body: `${index + 1}` })),
    ),
  );
}

/** A consumer in a process of its own that acknowledges nothing by itself. */
export async function member(parts: Parts, options: ConsumeOptions = {}) {
  const client = parts.client();
  const got: QueueMessage[] = [];
  const consumption = client.consume(
    QUEUE,
    { group: 'g', ack: 'manual', ...options },
    (message) => void got.push(message),
  );
  await stored(parts);
  return { client, consumption, got, kill: () => parts.kill(client.connection) };
}

export const numbers = (got: readonly QueueMessage[]): number[] => got.map((message) => Number(message.text()));
