import { readU32 } from '@trunkline/proto';
import type { LaneMember, ReturnHandler } from '../handlers.js';

/**
 * One of the group gets each response: the one with the least outstanding bytes, equal ones in turn. What was kept is
 * for the group's first member; later ones take their turn from then on.
 */
export const group: ReturnHandler = {
  snapshots: false,
  check: (options) => (options.group === '' ? 'the return handler group needs the name of a group' : undefined),
  open(lane) {
    let turn = 0;
    const next = (): LaneMember => {
      const { members } = lane;
      let best = members[turn % members.length]!;
      for (let step = 1; step < members.length; step++) {
        const member = members[(turn + step) % members.length]!;
        if (member.load < best.load) best = member;
      }
      turn = (members.indexOf(best) + 1) % members.length;
      return best;
    };
    return {
      deliver(buffer, start, end) {
        for (let at = start; at < end; at += readU32(buffer, at)) {
          if (lane.members.length === 0) return;
          next().send(buffer, at, at + readU32(buffer, at), 1);
        }
      },
    };
  },
};
