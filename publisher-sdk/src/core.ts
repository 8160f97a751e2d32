/** The provider without any runtime: give it a connection, or its host to a transport. */
export * from './provider.js';
export type { Reply } from './provider-session.js';
export { PublishManyError, type PublishMessage } from './publish-many.js';
export type { PublishOptions } from './publish-options.js';
export { MAX_UNCONFIRMED } from './publishing.js';
export type { Codes } from './registrations.js';
export type { EndOptions, Handler, RespondOptions, Subscription } from './subscription.js';
