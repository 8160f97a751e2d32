import { Buffer } from 'node:buffer';

/*
 * ZMTP 3.1 (https://rfc.zeromq.org/spec/37/) with the NULL mechanism, as ZeroMQ's own sockets speak it: both ends send a
 * greeting of 64 bytes, then a READY command; after it frames.
 */

/** The role in READY: a listener is a ROUTER, whoever dials a DEALER. */
export type SocketType = 'ROUTER' | 'DEALER';

export const GREETING_BYTES = 64;
const MECHANISM_AT = 12;
const MECHANISM_BYTES = 20;
const LEAST_VERSION = 3;

/** Flags of a frame. */
export const MORE = 1;
export const LONG = 2;
export const COMMAND = 4;

/** Longest command that is read, bytes: READY may carry properties of the application. */
export const MAX_COMMAND = 4096;
/** Longest context of a PING, bytes; what is behind it belongs to none. */
const MAX_CONTEXT = 16;

/** Socket types that may be at the other end, by our own. */
const partners: Record<SocketType, readonly string[]> = {
  ROUTER: ['DEALER', 'ROUTER', 'REQ'],
  DEALER: ['ROUTER', 'DEALER', 'REP'],
};

/** Bytes that each end sends first. */
export const greeting: Buffer = makeGreeting();

function makeGreeting(): Buffer {
  const bytes = Buffer.alloc(GREETING_BYTES);
  bytes[0] = 0xff;
  bytes[9] = 0x7f;
  bytes[10] = 3;
  bytes[11] = 1;
  bytes.write('NULL', MECHANISM_AT, 'latin1');
  return bytes;
}

/** What is wrong with the first bytes of a peer, as far as they have come; undefined where nothing is. */
export function greetingFault(bytes: Uint8Array): string | undefined {
  if (bytes.length > 0 && bytes[0] !== 0xff) return 'it does not speak ZeroMQ';
  if (bytes.length > 9 && bytes[9] !== 0x7f) return 'it does not speak ZeroMQ';
  if (bytes.length > 10 && bytes[10]! < LEAST_VERSION) return 'its version of ZeroMQ is older than 4';
  if (bytes.length < MECHANISM_AT + MECHANISM_BYTES) return undefined;
  for (let at = MECHANISM_AT; at < MECHANISM_AT + MECHANISM_BYTES; at++) {
    if (bytes[at] !== greeting[at]) return 'it wants security that this end does not have';
  }
  return undefined;
}

/** The READY command of a socket, as a frame. */
export function readyFrame(type: SocketType): Buffer {
  return commandFrame('READY', Buffer.concat([property('Socket-Type', type), property('Identity', '')]));
}

/** The answer to a PING with this context. */
export function pongFrame(context: Uint8Array): Buffer {
  return commandFrame('PONG', context.subarray(0, MAX_CONTEXT));
}

function commandFrame(name: string, data: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.of(name.length), Buffer.from(name, 'latin1'), data]);
  return Buffer.concat([Buffer.of(COMMAND, body.length), body]);
}

function property(name: string, value: string): Buffer {
  const size = Buffer.alloc(4);
  size.writeUInt32BE(value.length);
  return Buffer.concat([Buffer.of(name.length), Buffer.from(name, 'latin1'), size, Buffer.from(value, 'latin1')]);
}

export interface Command {
  readonly name: string;
  readonly data: Buffer;
}

/** Reads the body of a command frame; undefined where it is none. */
export function readCommand(body: Buffer): Command | undefined {
  const length = body[0];
  if (length === undefined || length === 0 || body.length < 1 + length) return undefined;
  return { name: body.toString('latin1', 1, 1 + length), data: body.subarray(1 + length) };
}

/** What is wrong with the peer's READY for a socket of our type; undefined where nothing is. */
export function readyFault(command: Command | undefined, type: SocketType): string | undefined {
  if (command?.name === 'ERROR') return 'it refuses this end';
  if (command?.name !== 'READY') return 'it breaks off the handshake';
  const peer = socketType(command.data);
  if (peer === undefined || !partners[type].includes(peer)) return `a ${peer ?? 'socket of no type'} is no partner`;
  return undefined;
}

function socketType(properties: Buffer): string | undefined {
  for (let at = 0; at < properties.length; ) {
    const nameEnd = at + 1 + properties[at]!;
    if (nameEnd + 4 > properties.length) return undefined;
    const end = nameEnd + 4 + properties.readUInt32BE(nameEnd);
    if (end > properties.length) return undefined;
    if (properties.toString('latin1', at + 1, nameEnd).toLowerCase() === 'socket-type') {
      return properties.toString('latin1', nameEnd + 4, end);
    }
    at = end;
  }
  return undefined;
}
