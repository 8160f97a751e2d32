import {
  FIRST_APPLICATION_TYPE,
  HEADER_BYTES,
  OFFSET,
  readU32,
  type Session,
  TrunklineError,
  writeHeader,
} from '@trunkline/proto';
import type { ApplicationContext, ApplicationMessage } from './handlers.js';
import type { Peer } from './peer.js';
import { bodyOf, messageEnd } from './provider-messages.js';
import type { Registry } from './registry.js';

/** An application message (type 128..255) and what its handler can do with it. */
export function applicationMessage(
  registry: Registry,
  peer: Peer,
  type: number,
  batch: Uint8Array,
  at: number,
): { message: ApplicationMessage; context: ApplicationContext } {
  const code = readU32(batch, at + OFFSET.code);
  const line = readU32(batch, at + OFFSET.line);
  const bytes = batch.slice(at, messageEnd(batch, at));
  const message = { type, code, line, bytes, body: bodyOf(bytes, 0), from: peer.name };
  return {
    message,
    context: {
      reply: (replyType, body) => answer(peer, replyType, code, line, body),
      forward: () => forward(registry, message),
    },
  };
}

function answer(peer: Peer, type: number, code: number, line: number, body: Uint8Array): boolean {
  if (!Number.isInteger(type) || type < FIRST_APPLICATION_TYPE || type > 255) {
    throw new TrunklineError(
      'OPTION_INVALID',
      `${type} is no type of an application message, ${FIRST_APPLICATION_TYPE}..255`,
    );
  }
  const bytes = new Uint8Array(HEADER_BYTES + body.length);
  writeHeader(bytes, 0, bytes.length, { type, code, line });
  bytes.set(body, HEADER_BYTES);
  return sendIfRoom(peer.session, bytes);
}

/** Nothing holds application messages back, so one that its receiver has no room for is not sent (PROTOCOL.md M-82). */
function sendIfRoom(session: Session, message: Uint8Array): boolean {
  if (session.state !== 'open' || session.credit <= 0 || message.length > session.peerMaxMessage) return false;
  session.sendData(message, 0, message.length, 1);
  return true;
}

function forward(registry: Registry, { code, bytes }: ApplicationMessage): number {
  const service = registry.service(code);
  if (service === undefined) return 0;
  let count = 0;
  for (const { session } of service.choose({ code, params: '' })) {
    if (session !== undefined && sendIfRoom(session, bytes)) count++;
  }
  return count;
}
