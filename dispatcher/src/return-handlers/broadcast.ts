import type { ReturnHandler } from '../handlers.js';

/** Every subscriber of the lane gets every response, at once. */
export const broadcast: ReturnHandler = {
  open: (lane) => ({
    deliver(buffer, start, end, count) {
      const { members } = lane;
      for (let index = 0; index < members.length; index++) members[index]!.send(buffer, start, end, count);
    },
  }),
};
