import { type Log, silentLog } from '@trunkline/proto';

/** The log of a provider that is given none: a handler's failure that nobody listens for must not vanish. */
export const consoleLog: Log = {
  ...silentLog,
  error: (fields, message) => console.error(`trunkline: ${message}`, fields),
};
