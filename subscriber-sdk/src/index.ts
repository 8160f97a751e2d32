export { type ErrorCode, TrunklineError } from '@trunkline/proto';
export * from './core.js';
