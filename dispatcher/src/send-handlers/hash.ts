import type { RequestView, SendHandler } from '../handlers.js';

/**
 * The same params always to the same provider, as long as it is up: the highest score of (params, provider) wins, so a
 * provider that leaves or joins moves only its own share of the requests.
 */
export const hash: SendHandler = {
  choose(request, up) {
    let best = up[0]!;
    let highest = -1;
    for (const provider of up) {
      const points = score(request, provider.id);
      if (points > highest) {
        best = provider;
        highest = points;
      }
    }
    return [best];
  },
};

/** FNV-1a over code, params and provider, mixed once more at the end: FNV alone spreads the last bytes badly. */
function score(request: RequestView, id: string): number {
  let state = 0x811c9dc5 ^ request.code;
  for (const text of [request.params, '\0', id]) {
    for (let index = 0; index < text.length; index++) {
      state = Math.imul(state ^ text.charCodeAt(index), 0x01000193);
    }
  }
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
  return (state ^ (state >>> 16)) >>> 0;
}
