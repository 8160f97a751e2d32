export * from './declaration.js';
export type { Group } from './group.js';
export type { Member, MemberPort } from './member.js';
export * from './options.js';
export * from './publisher.js';
export type { Queue } from './queue.js';
export * from './queues.js';
export * from './ranges.js';
export { deliveryCopy } from './stored-message.js';
