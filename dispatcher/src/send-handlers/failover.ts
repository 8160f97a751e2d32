import type { SendHandler } from '../handlers.js';

/** The first that is up, in order. */
export const failover: SendHandler = {
  choose: (_request, up) => up.slice(0, 1),
};
