/** The provider without any runtime: give it a connection, or its host to a transport. */
export * from './provider.js';
export { MAX_UNCONFIRMED, type PublishMessage, type PublishOptions, PublishManyError } from './publishing.js';
export type { Reply } from './provider-session.js';
export type { Codes } from './registrations.js';
export type { EndOptions, Handler, RespondOptions, Subscription } from './subscription.js';
