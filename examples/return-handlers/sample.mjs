// A return handler: every subscriber of a lane gets one response in N, beginning with the first, and always the final one.
//
//   "modules": { "returnHandlers": { "sample": { "path": "../examples/return-handlers/sample.mjs", "options": { "every": 10 } } } },
//   "services": [{ "code": 1001, "returnHandlers": ["broadcast", "sample"] }]
//
// A subscriber asks for it by name: client.subscribe(1001, { return: 'sample' }).
// The handler is made once; `open` is called for each lane, and what it returns lives as long as the lane.

import { Flag, OFFSET, readU32 } from '@trunkline/proto';

/** @returns {import('@trunkline/dispatcher').ReturnHandler} */
export default function sample({ every = 10 } = {}) {
  if (!Number.isInteger(every) || every < 1) throw new Error('"every" must be an integer, at least 1');
  return {
    open(lane) {
      let seen = 0;
      return {
        // messages stand back to back; each begins with its length
        deliver(buffer, start, end) {
          for (let at = start; at < end; at += readU32(buffer, at)) {
            const final = (buffer[at + OFFSET.flags] & Flag.FINAL) !== 0;
            if (seen++ % every !== 0 && !final) continue;
            for (const member of lane.members) member.send(buffer, at, at + readU32(buffer, at), 1);
          }
        },
      };
    },
  };
}
