export * from '../queues/store.js';
export { MemoryImage } from './chunk-list.js';
export * from './memory.js';
export { type SqliteOptions, SqliteStore } from './sqlite/index.js';
