import type { SendHandler } from '../handlers.js';

/** Every provider that is up, also one that comes up later; responses interleave. */
export const all: SendHandler = {
  choose: (_request, up) => up,
  joins: true,
};
