/** Every code an error of Trunkline may carry; PROTOCOL.md §8 says what each means to a peer. */
export const errorCodes = {
  // on the wire
  UNKNOWN_SERVICE: 'no service has this code',
  NOT_PROVIDED: 'the provider has no handler for this code (yet)',
  REFUSED: 'the provider refuses the request',
  SERVICE_REMOVED: 'the service was taken out of the forwarding table',
  FILTER_INVALID: 'the filter does not compile',
  RETURN_HANDLER_NOT_ALLOWED: 'the service does not allow this return handler or its options',
  OVERFLOW_NOT_ALLOWED: 'the service does not allow this overflow policy',
  LIMIT_EXCEEDED: 'a configured limit is reached',
  REQUEST_INVALID: 'the request itself is malformed or its id is in use',
  UNAUTHENTICATED: 'the credentials were refused',
  FORBIDDEN: 'the session may not do this',
  VERSION_UNSUPPORTED: 'the peer speaks another protocol version',
  SLOW_CONSUMER: 'the subscriber fell behind and asked to be disconnected then',
  SHUTTING_DOWN: 'the peer is stopping',
  KICKED: 'an operator ended the session',
  SESSION_LOST: 'the peer was not heard in time, or batches were lost',
  HANDLER_FAILED: 'the handler threw or rejected',
  COMPLETED: 'the stream came to its end',
  EXITED: 'the command behind the stream ended',
  NOT_HELD: 'the consumer does not hold the message (any more)',
  QUEUE_FULL: 'the queue is at its bound',
  STORE_FULL: 'the device of the store is full',
  STORE_FAILED: 'the store cannot be written or read',
  // local
  STORE_DAMAGED: 'a part of the store cannot be read any more',
  STORE_LOCKED: 'another process has the store',
  BATCH_INVALID: 'a batch could not be decoded',
  MESSAGE_TOO_LARGE: 'the message is larger than the peer takes',
  META_INVALID: 'tag, key or attributes cannot be encoded or decoded',
  BODY_INVALID: 'the body cannot be encoded or decoded',
  PARAMS_INVALID: 'the params cannot be encoded',
  OPTION_INVALID: 'an option has a wrong type or is out of range',
  ADDRESS_INVALID: 'the address is malformed or its scheme unknown',
  ADDRESS_IN_USE: 'something else listens at the address',
  CONFIG_INVALID: 'the configuration is wrong',
  HANDSHAKE_REFUSED: 'the secure handshake was refused',
  DISCONNECTED: 'there is no session with the peer',
  TIMEOUT: 'no answer came in time',
  ABORTED: 'the caller gave up',
  CLOSED: 'the object was closed before',
  NOT_SUBSCRIBED: 'the subscription has already ended',
  HANDLER_EXISTS: 'a handler for this code is registered already',
  STATE_INVALID: 'a state machine was asked for a move it does not have',
} as const;

export type ErrorCode = keyof typeof errorCodes;

/** The one error type: `code` is for programs, `message` for people, `retryable` says whether the same call may work later. */
export class TrunklineError extends Error {
  override readonly name = 'TrunklineError';
  readonly code: ErrorCode;
  readonly retryable: boolean;
  /** 1-based offset into the filter, where the error is about one. */
  readonly position: number | undefined;
  /** Exit code of the command behind the stream, where there was one. */
  readonly exit: number | undefined;

  constructor(
    code: ErrorCode,
    message: string = errorCodes[code],
    more: { retryable?: boolean; position?: number | undefined; exit?: number | undefined; cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.code = code;
    this.retryable = more.retryable ?? false;
    this.position = more.position;
    this.exit = more.exit;
  }
}

/** A code as a peer sent it; one this version does not know reads as `fallback`. */
export function knownCode(code: string, fallback: ErrorCode): ErrorCode {
  return Object.hasOwn(errorCodes, code) ? (code as ErrorCode) : fallback;
}
