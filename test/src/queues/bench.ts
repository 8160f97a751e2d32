import type { Consumption, QueueMessage } from '@trunkline/subscriber/core';
import { Parts } from '../issues/support.js';

export const QUEUE = 4001;
export const DEAD = 4002;

/** A dispatcher with a queue on a simulated disk, and real SDKs, in memory. */
export async function queueParts(options: object = {}, services: object[] = []): Promise<Parts> {
  return Parts.start(
    [{ code: QUEUE, kind: 'queue', ...options }, { code: DEAD, kind: 'queue', storage: 'memory' }, ...services],
    { dataDirectory: '/data' },
  );
}

/** Lets the disk do what it has to. */
export async function stored(parts: Parts): Promise<void> {
  for (let round = 0; round < 8; round++) await parts.advance(3);
}

/** Runs something that waits for the disk. */
export async function settled<T>(parts: Parts, promise: Promise<T>): Promise<T> {
  const guarded = promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  await stored(parts);
  const result = await guarded;
  if ('error' in result) throw result.error;
  return result.value;
}

export function texts(messages: readonly QueueMessage[]): string[] {
  return messages.map((message) => `${message.text()}${message.redelivered ? `:${message.deliveries}` : ''}`);
}

/** What a consumption says beside its messages. */
export function events(consumption: Consumption): string[] {
  const lines: string[] = [];
  consumption.on('state', (state) => lines.push(state));
  consumption.on('gap', ({ count, reason }) => lines.push(`gap ${count} ${reason}`));
  consumption.on('end', ({ code }) => lines.push(`end ${code}`));
  consumption.on('error', ({ code }) => lines.push(`error ${code}`));
  return lines;
}
