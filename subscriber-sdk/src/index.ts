export { type ErrorCode, TrunklineError } from '@trunkline/proto';
export type { ConnectCurve, ConnectOptions, ConnectTarget } from '@trunkline/proto/connect';
export { connect } from './connect.js';
export * from './core.js';
