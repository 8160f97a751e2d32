// Everything that needs no Node: the client on a connection that somebody else makes.
export { Client, type ClientEvents, type ClientOptions, type ClientState } from './client.js';
export { Consumption, type ConsumptionEvents, type ConsumptionState, type QueueHandler } from './consumption.js';
export type { MessageHandler } from './delivery.js';
export type { MessageIterator } from './iterator.js';
export { Message } from './message.js';
export type { ConsumeOptions, RequestOptions, StartOption, SubscribeOptions } from './options.js';
export { type ExtendOptions, type NackOptions, QueueMessage } from './queue-message.js';
export {
  type AcceptedEvent,
  type EndEvent,
  type GapEvent,
  type StatusEvent,
  Subscription,
  type SubscriptionEvents,
  type SubscriptionState,
} from './subscription.js';
export type { Task } from './task.js';
