import type { SendHandler } from '../handlers.js';
import { all } from './all.js';
import { failover } from './failover.js';
import { hash } from './hash.js';
import { roundRobin } from './round-robin.js';

/** The built-in send handlers. A handler with a state of its own is made anew for each service. */
export const sendHandlers: Readonly<Record<string, () => SendHandler>> = {
  failover: () => failover,
  roundRobin,
  hash: () => hash,
  all: () => all,
};
