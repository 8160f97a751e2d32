export * from './config/index.js';
export * from './daemon.js';
export * from './dispatcher.js';
export * from './filters/index.js';
export * from './forwarding-table.js';
export type * from './handlers.js';
export * from './load-handlers.js';
export * from './queues/index.js';
export * from './service.js';
