import type { SendHandler } from '../handlers.js';

/** Each request to the next provider in turn. */
export function roundRobin(): SendHandler {
  let next = 0;
  return {
    choose: (_request, up) => [up[next++ % up.length]!],
  };
}
