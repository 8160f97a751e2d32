import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  greetingFault,
  greeting as ownGreeting,
  pongFrame,
  readCommand,
  readyFault,
  readyFrame,
  type SocketType,
} from '../../../../../proto/dist/transports/zmtp/handshake.js';
import { COMMAND, command, commandBody, greeting, property } from './raw.js';

const read = (frame: Buffer) => readCommand(frame.subarray(2));

test('the greeting is that of ZMTP 3.1 with the NULL mechanism, and no beginning of it is a fault', () => {
  assert.deepEqual(ownGreeting, greeting());
  for (let length = 0; length <= 64; length++) {
    assert.equal(greetingFault(ownGreeting.subarray(0, length)), undefined, `${length}`);
  }
});

test('later versions, an end that calls itself a server and whatever fills the gaps are no fault', () => {
  for (const version of [
    [3, 0],
    [3, 255],
    [4, 0],
    [255, 0],
  ]) {
    assert.equal(greetingFault(greeting('NULL', version)), undefined);
  }
  const odd = greeting();
  odd.fill(0xee, 1, 9);
  odd.fill(0xee, 32);
  assert.equal(greetingFault(odd), undefined);
});

const stranger = 'it does not speak ZeroMQ';
const insecure = 'it wants security that this end does not have';
const wrong = (change: (bytes: Buffer) => void) => {
  const bytes = greeting();
  change(bytes);
  return bytes;
};

const faults: [string, Buffer, string, number][] = [
  ['HTTP', Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'), stranger, 1],
  ['an early version of ZMTP', Buffer.from([0x01, 0x00]), stranger, 1],
  ['no end of the signature', wrong((bytes) => bytes.fill(0, 9, 10)), stranger, 10],
  ['version 2', greeting('NULL', [2, 0]), 'its version of ZeroMQ is older than 4', 11],
  ['version 0', greeting('NULL', [0, 0]), 'its version of ZeroMQ is older than 4', 11],
  ['the mechanism CURVE', greeting('CURVE'), insecure, 32],
  ['the mechanism PLAIN', greeting('PLAIN'), insecure, 32],
  ['no mechanism', greeting(''), insecure, 32],
  ['a mechanism that goes on behind NULL', greeting('NULLS'), insecure, 32],
  ['a mechanism whose last byte is not 0', wrong((bytes) => bytes.fill(1, 31, 32)), insecure, 32],
];

for (const [what, bytes, reason, known] of faults) {
  test(`${what} is a fault as soon as it is seen: after ${known} bytes`, () => {
    for (let length = 0; length <= bytes.length; length++) {
      assert.equal(greetingFault(bytes.subarray(0, length)), length < known ? undefined : reason, `${length}`);
    }
  });
}

const partners: [SocketType, string[]][] = [
  ['ROUTER', ['DEALER', 'ROUTER', 'REQ']],
  ['DEALER', ['ROUTER', 'DEALER', 'REP']],
];
const types = ['ROUTER', 'DEALER', 'REQ', 'REP', 'PUB', 'SUB', 'XPUB', 'XSUB', 'PUSH', 'PULL', 'PAIR', 'dealer', ''];

test('READY names a socket type that may be at the other end, or is a fault', () => {
  for (const [own, allowed] of partners) {
    for (const type of types) {
      const fault = readyFault(read(command('READY', property('Socket-Type', type))), own);
      assert.equal(fault, allowed.includes(type) ? undefined : `a ${type} is no partner`);
    }
  }
});

test('what READY says besides does not matter, nor how the name of its property is written', () => {
  const socketType = property('SOCKET-type', 'DEALER');
  const other = [property('Identity', 'x'.repeat(255)), property('X-Empty', ''), property('', 'nameless')];
  for (const data of [[socketType], [...other, socketType], [socketType, ...other]]) {
    assert.equal(readyFault(readCommand(commandBody('READY', Buffer.concat(data))), 'ROUTER'), undefined);
  }
});

test('READY that breaks off names no type', () => {
  const data = property('Socket-Type', 'DEALER');
  for (let length = 0; length < data.length; length++) {
    const broken = read(command('READY', data.subarray(0, length)));
    assert.equal(readyFault(broken, 'ROUTER'), 'a socket of no type is no partner', `${length}`);
  }
  assert.equal(
    readyFault(read(command('READY', property('Identity', ''))), 'ROUTER'),
    'a socket of no type is no partner',
  );
});

test('any other command in place of READY is a fault, ERROR one of its own', () => {
  for (const name of ['PING', 'PONG', 'ready', 'READYX', 'INITIATE', 'SUBSCRIBE']) {
    const other = read(command(name, property('Socket-Type', 'DEALER')));
    assert.equal(readyFault(other, 'ROUTER'), 'it breaks off the handshake');
  }
  assert.equal(readyFault(undefined, 'ROUTER'), 'it breaks off the handshake');
  assert.equal(readyFault(read(command('ERROR', '\x07no room')), 'ROUTER'), 'it refuses this end');
});

test('a command has a name', () => {
  assert.equal(readCommand(Buffer.alloc(0)), undefined);
  assert.equal(readCommand(Buffer.from([0, 1, 2])), undefined);
  assert.equal(readCommand(Buffer.from([3, 65, 66])), undefined);
  assert.deepEqual(readCommand(Buffer.from([2, 65, 66])), { name: 'AB', data: Buffer.alloc(0) });
  assert.deepEqual(readCommand(Buffer.from([1, 65, 0, 255])), { name: 'A', data: Buffer.from([0, 255]) });
});

test('any bytes at all are a command and a READY or not, and never an exception', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), fc.boolean(), (bytes, asReady) => {
      const data = Buffer.from(bytes);
      const fault = readyFault(asReady ? read(command('READY', data)) : readCommand(data), 'DEALER');
      assert.equal(typeof fault, 'string');
    }),
    { numRuns: 500 },
  );
});

test('what this end sends is what it would take, and whole frames', () => {
  for (const [own, other] of [
    ['ROUTER', 'DEALER'],
    ['DEALER', 'ROUTER'],
  ] as const) {
    const frame = readyFrame(own);
    assert.deepEqual([frame[0], frame[1]], [COMMAND, frame.length - 2]);
    assert.equal(readyFault(read(frame), other), undefined);
  }
});

test('a PONG has the context of its PING, of which no more than 16 bytes are one', () => {
  for (const length of [0, 1, 16]) {
    const context = Buffer.alloc(length, 7);
    assert.deepEqual(pongFrame(context), command('PONG', context));
  }
  assert.deepEqual(pongFrame(Buffer.alloc(300, 7)), command('PONG', Buffer.alloc(16, 7)));
});
