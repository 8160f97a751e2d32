import {
  decodeParams,
  Flag,
  HEADER_BYTES,
  isThenable,
  payload,
  singleMessage,
  TrunklineError,
  Type,
  writeHeader,
} from '@trunkline/proto';
import type { Dispatcher } from '../dispatcher.js';
import type { Peer } from '../peer.js';
import { actions } from './actions.js';
import { queueActions } from './queues.js';
import { views } from './views.js';

const encoder = new TextEncoder();

/**
 * Service code 0 is the dispatcher itself. A request's params are `{"show": VIEW, "after": ID, "limit": N}` or
 * `{"do": ACTION, …}`; the one, final response is JSON.
 */
export function answerAdmin(dispatcher: Dispatcher, peer: Peer, batch: Uint8Array, at: number): void {
  const fields = peer.session.decode(payload.request, batch, at);
  if (fields === undefined) return;
  const { request } = fields;
  const answer = (result: unknown) => reply(peer, request, encoder.encode(JSON.stringify(result)));
  const refuse = (error: unknown) => {
    if (!(error instanceof TrunklineError)) throw error;
    const { code, message, retryable } = error;
    peer.refuse(0, request, { code, message, retryable });
  };
  try {
    checkRoom(peer, request);
    const result = perform(dispatcher, decodeParams(fields.params));
    // what has to be read or stored first is answered later
    if (isThenable(result))
      Promise.resolve(result)
        .then(answer)
        .catch(refuse)
        .catch((error) => failed(peer, error));
    else answer(result);
  } catch (error) {
    refuse(error);
  }
}

function failed(peer: Peer, error: unknown): void {
  peer.core.log.error({ error: String(error) }, 'an admin request failed');
}

function perform(dispatcher: Dispatcher, params: unknown): unknown {
  const fields = (typeof params === 'object' && params !== null ? params : {}) as Record<string, unknown>;
  const { show, after = 0, limit = 1000 } = fields;
  for (const table of [actions, queueActions]) {
    if (typeof fields.do === 'string' && Object.hasOwn(table, fields.do)) return table[fields.do]!(dispatcher, fields);
  }
  const view = typeof show === 'string' && Object.hasOwn(views, show) ? views[show] : undefined;
  if (view === undefined) {
    throw new TrunklineError('PARAMS_INVALID', `show must be one of ${Object.keys(views).join(', ')}`);
  }
  if (!isCount(after) || !isCount(limit) || limit === 0 || limit > 10_000) {
    throw new TrunklineError('PARAMS_INVALID', 'after must be an integer ≥ 0 and limit one of 1..10000');
  }
  return view(dispatcher, after, limit);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Before anything is done: an answer is not held back for a peer without room for it. @throws TrunklineError LIMIT_EXCEEDED */
function checkRoom(peer: Peer, request: number): void {
  if (request === 0) throw new TrunklineError('REQUEST_INVALID', 'a request id must not be 0');
  if (peer.session.credit > 0) return;
  throw new TrunklineError('LIMIT_EXCEEDED', 'the session has no credit for the answer', { retryable: true });
}

/** @throws TrunklineError MESSAGE_TOO_LARGE */
function reply(peer: Peer, request: number, body: Uint8Array): void {
  const length = HEADER_BYTES + body.length;
  if (length > peer.session.peerMaxMessage) {
    throw new TrunklineError('MESSAGE_TOO_LARGE', `the answer has ${length} bytes: ask with a smaller limit`);
  }
  // a line of its own for the one response; it is free again at once, as nothing else can arrive on it
  const { lines } = peer.core;
  const line = lines.reserve();
  const accepted = payload.accepted.encode({ request, status: 'live' });
  peer.session.sendEncoded(singleMessage({ type: Type.ACCEPTED, line }, accepted));
  const bytes = new Uint8Array(length);
  const flags = Flag.FINAL | Flag.JSON;
  writeHeader(bytes, 0, bytes.length, { type: Type.RESPONSE, line, sequence: 1, flags });
  bytes.set(body, HEADER_BYTES);
  peer.session.sendData(bytes, 0, bytes.length, 1);
}
