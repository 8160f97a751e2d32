export { DataMessage, type ErrorCode, TrunklineError } from '@trunkline/proto';
export type { ConnectCurve, ConnectOptions, ConnectTarget } from '@trunkline/proto/connect';
export * from './bind.js';
export * from './connect.js';
export * from './core.js';
