import type { TrunklineError } from '@trunkline/proto';
import type { Message } from './message.js';
import type { SubscribeOptions } from './options.js';
import type { EndEvent, GapEvent, StatusEvent, Subscription } from './subscription.js';

/** A subscription as an object, for applications that keep one class per business task; see `client.run`. */
export interface Task {
  readonly code: number;
  readonly params?: unknown;
  readonly options?: Omit<SubscribeOptions, 'params'>;
  /** May return a promise: with `ordered`, the default, the next message waits for it. */
  onMessage(message: Message): unknown;
  onStatus?(status: StatusEvent): unknown;
  onGap?(gap: GapEvent): unknown;
  onEnd?(end: EndEvent): unknown;
  onError?(error: TrunklineError): unknown;
}

/** Hands the events of a subscription to the task's methods. */
export function attachTask(subscription: Subscription, task: Task): void {
  if (task.onStatus !== undefined) subscription.on('status', (status) => task.onStatus?.(status));
  if (task.onGap !== undefined) subscription.on('gap', (gap) => task.onGap?.(gap));
  if (task.onEnd !== undefined) subscription.on('end', (end) => task.onEnd?.(end));
  if (task.onError !== undefined) subscription.on('error', (error) => task.onError?.(error));
}
