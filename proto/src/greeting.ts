import { Type } from './header.js';
import * as payload from './payload.js';
import type { SessionContext } from './session-types.js';
import { singleMessage } from './single-message.js';

/** What both ends say of themselves. */
function greeting({ limits, identity }: SessionContext, nonce: Uint8Array): payload.Welcome {
  return {
    nonce,
    instance: identity.instance,
    name: identity.name,
    heartbeatMs: limits.heartbeat,
    maxMessage: limits.maxMessage,
    credit: limits.receiveWindow,
  };
}

export function helloBatch(context: SessionContext, nonce: Uint8Array, token: string): Uint8Array {
  return singleMessage({ type: Type.HELLO }, payload.hello.encode({ ...greeting(context, nonce), token }));
}

export function welcomeBatch(context: SessionContext, nonce: Uint8Array): Uint8Array {
  return singleMessage({ type: Type.WELCOME }, payload.welcome.encode(greeting(context, nonce)));
}
