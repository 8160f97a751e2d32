export * from './errors.js';
export * from './header.js';
export * from './meta.js';
export * from './ports.js';
export * from './timers.js';
