import { Flag, OFFSET, payload, sameBytes, singleMessage, Type, writeU32 } from '@trunkline/proto';
import type { Member } from './member.js';
import { readInput } from './message-input.js';
import type { Stream } from './stream.js';

/**
 * ACCEPTED for one request, and what is kept (rule 9): all of it in one step, so that nothing is lost or doubled
 * between it and what comes live.
 */
export function sendSnapshot(stream: Stream, member: Member, request: number, start: payload.Start): void {
  const { lane } = member;
  const { code, generation, sequence, epoch, kept } = stream;
  const wanted = kept !== undefined && start.from !== payload.StartFrom.LIVE && firstEnough(member);
  // without an epoch the reader means the present history, whichever that is
  const known = start.epoch.length === 0 || sameBytes(start.epoch, epoch);
  const resuming = start.from === payload.StartFrom.AFTER && known;
  const after = resuming ? start.sequence : 0;
  // what a resumed reader can no longer have: all since then, or what the bound of the history dropped
  const missing = resuming ? (wanted ? kept.dropped : sequence) : 0;
  const resumed = resuming && missing <= after;

  if (member.joined < 0) member.joined = lane.holdsBack ? sequence : 0;
  const status = stream.status === 'stale' ? 'stale' : 'live';
  const accepted = payload.writeAccepted({ request, epoch, snapshot: wanted, resumed, status });
  member.tellWritten({ type: Type.ACCEPTED, code, line: lane.line, generation, sequence }, accepted);
  if (!wanted && (!resuming || resumed)) return;
  const header = { code, line: lane.line, generation, sequence };
  if (resuming && !resumed) {
    const gap = payload.gap.encode({ count: missing - after, first: after + 1, last: missing, reason: 'history' });
    member.tell(singleMessage({ type: Type.GAP, ...header }, gap));
  }
  if (!wanted) return;
  kept.visit(after, (message) => sendKept(member, message));
  member.tell(singleMessage({ type: Type.RESPONSE, ...header, flags: Flag.SNAPSHOT | Flag.SNAPSHOT_END }));
}

/** A group's history goes to its first member only: no response is for two of them. */
function firstEnough({ lane }: Member): boolean {
  return lane.stream.service.returnHandler(lane.options.returnHandler)?.snapshots !== false || lane.size === 1;
}

function sendKept(member: Member, message: Uint8Array): void {
  const { lane } = member;
  const { filter } = lane.options;
  if (filter !== undefined) {
    const input = readInput(message, 0);
    if (input === undefined || !filter.matches(input)) return;
  }
  const copy = message.slice();
  copy[OFFSET.flags] = copy[OFFSET.flags]! | Flag.SNAPSHOT;
  writeU32(copy, OFFSET.line, lane.line);
  member.sendKept(copy, 0, copy.length, 1);
}
