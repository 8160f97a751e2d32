export * from './config/index.js';
export * from './forwarding-table.js';
export * from './service.js';
