export { DataMessage, TrunklineError } from '@trunkline/proto';
export * from './core.js';
