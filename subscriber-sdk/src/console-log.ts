import { type Log, silentLog } from '@trunkline/proto';

/** The log of a client that is given none: what nobody listens to must not vanish. */
export const consoleLog: Log = {
  ...silentLog,
  warn: (fields, message) => console.warn(`trunkline: ${message}`, fields),
  error: (fields, message) => console.error(`trunkline: ${message}`, fields),
};
