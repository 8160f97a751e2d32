import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type FrameOwner, FrameReader } from '../../../../../proto/dist/transports/zmtp/frames.js';
import { COMMAND, frame, LONG, longHeader, MORE } from './raw.js';

const MAX = 2000;
const MAX_COMMAND = 4096;

/** Keeps what it hears as text, and halts where it is told to and after a fault. */
class Owner implements FrameOwner {
  readonly heard: string[] = [];
  readonly messages: Uint8Array[] = [];
  halted = false;
  ready = true;

  constructor(private readonly halts: (count: number) => boolean = () => false) {}

  onMessage(batch: Uint8Array): void {
    assert.equal(Object.getPrototypeOf(batch), Uint8Array.prototype);
    this.messages.push(batch);
    this.hear(`message ${Buffer.from(batch).toString('hex')}`);
  }

  onForeign(): void {
    this.hear('foreign');
  }

  onCommand(body: Buffer): void {
    this.hear(`command ${body.toString('hex')}`);
  }

  onFault(reason: string): void {
    this.heard.push(`fault ${reason}`);
    this.halted = true;
  }

  private hear(what: string): void {
    this.heard.push(what);
    this.halted = this.halts(this.heard.length);
  }
}

/** Frames, and what is to be heard of them. */
interface Piece {
  readonly bytes: Buffer;
  readonly heard: readonly string[];
}

const body = (maxLength: number) => fc.uint8Array({ maxLength });
/** Short frames mostly, and some that need eight bytes for their length. */
const content = fc.oneof(body(20), body(20), body(600));
const flag = fc.constantFrom(0, LONG);

const message = fc.tuple(flag, content).map(
  ([flags, bytes]): Piece => ({
    bytes: frame(flags, bytes),
    heard: [`message ${Buffer.from(bytes).toString('hex')}`],
  }),
);
const command = fc.tuple(flag, content).map(
  ([flags, bytes]): Piece => ({
    bytes: frame(COMMAND | flags, bytes),
    heard: [`command ${Buffer.from(bytes).toString('hex')}`],
  }),
);
/** A message of two to four frames, with or without commands between them. */
const foreign = fc
  .array(fc.tuple(flag, content, fc.option(command, { nil: undefined })), { minLength: 2, maxLength: 4 })
  .map((parts): Piece => {
    const heard: string[] = [];
    const pieces = parts.flatMap(([flags, bytes, between], index) => {
      const last = index === parts.length - 1;
      const own = frame(flags | (last ? 0 : MORE), bytes.subarray(0, 400));
      if (last || between === undefined) return [own];
      heard.push(...between.heard);
      return [own, between.bytes];
    });
    return { bytes: Buffer.concat(pieces), heard: [...heard, 'foreign'] };
  });
const pieces = fc.array(fc.oneof(message, message, command, foreign), { maxLength: 12 });
/** Where a stream is cut, in thousandths of it. */
const cuts = fc.array(fc.integer({ min: 0, max: 1000 }), { maxLength: 20 });

function chunksOf(bytes: Buffer, at: readonly number[]): Buffer[] {
  const places = [...at.map((cut) => Math.floor((cut * bytes.length) / 1000)), bytes.length].sort((a, b) => a - b);
  // each in memory of its own, as sockets give it
  return places.map((end, index) => Buffer.from(bytes.subarray(places[index - 1] ?? 0, end)));
}

/** Reads a chunk as a connection does: what was left where the owner halted is read again later. */
function feed(reader: FrameReader, owner: Owner, chunk: Buffer): void {
  for (let rest = chunk; rest.length > 0; ) {
    const taken = reader.read(rest);
    assert.ok(taken > 0);
    if (!owner.halted) assert.equal(taken, rest.length);
    rest = rest.subarray(taken);
    owner.halted = false;
  }
}

test('frames cut into any chunks are heard as they were sent, also by one who halts at any of them', () => {
  fc.assert(
    fc.property(pieces, cuts, fc.integer({ min: 1, max: 5 }), (sent, at, every) => {
      const owner = new Owner((count) => count % every === 0);
      const reader = new FrameReader(owner, MAX);
      for (const chunk of chunksOf(Buffer.concat(sent.map((piece) => piece.bytes)), at)) feed(reader, owner, chunk);
      assert.deepEqual(
        owner.heard,
        sent.flatMap((piece) => piece.heard),
      );
    }),
    { numRuns: 500 },
  );
});

test('the same, byte by byte', () => {
  fc.assert(
    fc.property(pieces, (sent) => {
      const owner = new Owner();
      const reader = new FrameReader(owner, MAX);
      for (const byte of Buffer.concat(sent.map((piece) => piece.bytes))) {
        assert.equal(reader.read(Buffer.of(byte)), 1);
      }
      assert.deepEqual(
        owner.heard,
        sent.flatMap((piece) => piece.heard),
      );
    }),
    { numRuns: 50 },
  );
});

test('any bytes at all are frames or one fault, and never an exception', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), cuts, (bytes, at) => {
      const owner = new Owner();
      const reader = new FrameReader(owner, MAX);
      for (const chunk of chunksOf(Buffer.from(bytes), at)) {
        const halted = owner.halted;
        const taken = reader.read(chunk);
        assert.equal(taken, halted ? 0 : chunk.length);
      }
      const fault = owner.heard.findIndex((what) => what.startsWith('fault'));
      assert.ok(fault < 0 || fault === owner.heard.length - 1);
    }),
    { numRuns: 500 },
  );
});

test('a message within a chunk is a view of it, and one that chunks share has memory of its own', () => {
  const owner = new Owner();
  const reader = new FrameReader(owner, MAX);
  const bytes = Buffer.concat([frame(0, 'whole'), frame(0, 'parted')]);
  const first = Buffer.from(bytes.subarray(0, 10));
  reader.read(first);
  reader.read(Buffer.from(bytes.subarray(10)));
  const [whole, parted] = owner.messages;
  assert.equal(whole!.buffer, first.buffer);
  assert.equal(parted!.byteLength, parted!.buffer.byteLength);
  assert.deepEqual(
    owner.messages.map((batch) => Buffer.from(batch).toString()),
    ['whole', 'parted'],
  );
});

test('who has halted is given nothing', () => {
  const owner = new Owner(() => true);
  const reader = new FrameReader(owner, MAX);
  const bytes = Buffer.concat([frame(0, 'one'), frame(0, 'two'), frame(0, 'three')]);
  const taken = reader.read(bytes);
  assert.equal(taken, 5);
  assert.equal(reader.read(bytes.subarray(taken)), 0);
  assert.equal(owner.heard.length, 1);
});

const faults: [string, Buffer, string][] = [
  ['a message of one byte too many', frame(0, Buffer.alloc(MAX + 1)), `a message has more than ${MAX} bytes`],
  ['the header of one alone', longHeader(0, BigInt(MAX + 1)), `a message has more than ${MAX} bytes`],
  ['a command of one byte too many', longHeader(COMMAND, BigInt(MAX_COMMAND + 1)), `more than ${MAX_COMMAND} bytes`],
  [
    'frames of one message that are too many together',
    Buffer.concat([frame(MORE, Buffer.alloc(MAX - 5)), frame(MORE, 'xxxxx'), frame(0, 'y')]),
    `a message has more than ${MAX} bytes`,
  ],
  ...[2n ** 31n, 2n ** 32n, 2n ** 32n + 1n, 2n ** 53n + 1n, 2n ** 63n, 2n ** 64n - 1n].map(
    (length): [string, Buffer, string] => [`a length of ${length}`, longHeader(0, length), 'more than'],
  ),
];

for (const [what, bytes, reason] of faults) {
  test(`${what} is a fault, however it is cut, and nothing behind it is heard`, () => {
    for (const cut of [0, 1, 5, 8, bytes.length]) {
      const owner = new Owner();
      const reader = new FrameReader(owner, MAX);
      for (const chunk of [bytes.subarray(0, cut), bytes.subarray(cut), frame(0, 'later')]) reader.read(chunk);
      assert.equal(owner.heard.length, 1);
      assert.match(owner.heard[0]!, new RegExp(`^fault .*${reason}`));
    }
  });
}

test('what is just small enough is none', () => {
  const owner = new Owner();
  const reader = new FrameReader(owner, MAX);
  reader.read(frame(0, Buffer.alloc(MAX)));
  reader.read(Buffer.concat([frame(MORE, Buffer.alloc(MAX - 1)), frame(0, 'y')]));
  reader.read(frame(COMMAND, Buffer.alloc(MAX_COMMAND)));
  // the bytes of an earlier message of several frames count for it alone
  reader.read(Buffer.concat([frame(MORE, Buffer.alloc(MAX)), frame(0, '')]));
  assert.deepEqual(
    owner.heard.map((what) => what.split(' ')[0]),
    ['message', 'foreign', 'command', 'foreign'],
  );
});

test('a command between the frames of a long message is no fault: its own length counts', () => {
  const owner = new Owner();
  const reader = new FrameReader(owner, 10 * MAX_COMMAND);
  reader.read(Buffer.concat([frame(MORE, Buffer.alloc(2 * MAX_COMMAND)), frame(COMMAND, 'ping'), frame(0, 'x')]));
  assert.deepEqual(
    owner.heard.map((what) => what.split(' ')[0]),
    ['command', 'foreign'],
  );
});

test('flags that do not exist are a fault', () => {
  for (let flags = 0; flags < 256; flags++) {
    const owner = new Owner();
    new FrameReader(owner, MAX).read(frame(flags, ''));
    const [heard] = owner.heard;
    if (flags > (MORE | LONG | COMMAND)) assert.equal(heard, 'fault it sends frames of an unknown kind');
    else assert.ok(heard === undefined || !heard.startsWith('fault'), `${flags}`);
  }
});

test('before the handshake commands are read and nothing else, not even a message that only begins', () => {
  for (const bytes of [frame(0, 'x'), frame(MORE, 'x'), longHeader(0, 1000n)]) {
    const owner = new Owner();
    owner.ready = false;
    const reader = new FrameReader(owner, MAX);
    reader.read(Buffer.concat([frame(COMMAND, 'c'), bytes]));
    assert.deepEqual(owner.heard, ['command 63', 'fault it breaks off the handshake']);
  }
});

test('a length alone takes little memory, and a long message comes whole out of a growing one', () => {
  const huge = 1024 * 1024 * 1024;
  const before = process.memoryUsage().arrayBuffers;
  const readers = Array.from({ length: 8 }, () => new FrameReader(new Owner(), 2 * huge));
  for (const reader of readers) reader.read(Buffer.concat([longHeader(0, BigInt(huge)), Buffer.alloc(10)]));
  assert.ok(process.memoryUsage().arrayBuffers - before < 16 * 1024 * 1024);

  const owner = new Owner();
  const reader = new FrameReader(owner, huge);
  const sent = Buffer.alloc(5 * 1024 * 1024 + 3);
  for (let at = 0; at < sent.length; at++) sent[at] = at * 7 + (at >> 8);
  const bytes = Buffer.concat([frame(0, sent), frame(0, 'next')]);
  for (let at = 0; at < bytes.length; at += 65_536) reader.read(Buffer.from(bytes.subarray(at, at + 65_536)));
  assert.equal(owner.messages.length, 2);
  assert.ok(sent.equals(owner.messages[0]!));
});
