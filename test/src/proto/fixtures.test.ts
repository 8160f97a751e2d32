import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  BatchError,
  bodyStart,
  checkBatch,
  decodeMeta,
  encodeMeta,
  Flag,
  HEADER_BYTES,
  headerFault,
  type Meta,
  metaStart,
  OFFSET,
  payload,
  readU16,
  readU32,
  readU53,
  Type,
  typeName,
  writeHeader,
} from '@trunkline/proto';
import protobuf from 'protobufjs';
import { fromHex, loadFixtures, schemaPath, toHex } from './fixtures.js';

interface MessageFixture {
  name: string;
  type: string;
  hex: string;
  header: {
    length: number;
    version: number;
    type: number;
    headerLength: number;
    flags: number;
    code: number;
    line: number;
    sequence: number;
    generation: number;
    metaLength: number;
  };
  extension?: string;
  meta?: Record<string, unknown>;
  payload?: { message: string; fields: Record<string, unknown> };
  body?: string;
}

interface BatchFixture {
  name: string;
  hex: string;
  maxMessage: number;
  types?: string[];
  fault?: string;
  at?: number;
}

const messages = loadFixtures<MessageFixture>('messages');
const batches = loadFixtures<BatchFixture>('batches');
const MAX = 1048576;

// meta and payload of a fixture are in the JSON form of protobuf; a second implementation, which reads the schema at
// run time, translates them
const schema = protobuf.loadSync(schemaPath);
const toJson = (message: string, bytes: Uint8Array) => {
  const type = schema.lookupType(`trunkline.${message}`);
  return type.toObject(type.decode(bytes), { longs: String, bytes: String, enums: String });
};
const fromJson = (message: string, fields: Record<string, unknown>) => {
  const type = schema.lookupType(`trunkline.${message}`);
  return type.encode(type.fromObject(fields)).finish();
};

function readHeader(bytes: Uint8Array): MessageFixture['header'] {
  return {
    length: readU32(bytes, OFFSET.length),
    version: bytes[OFFSET.version]!,
    type: bytes[OFFSET.type]!,
    headerLength: bytes[OFFSET.words]!,
    flags: bytes[OFFSET.flags]!,
    code: readU32(bytes, OFFSET.code),
    line: readU32(bytes, OFFSET.line),
    sequence: readU53(bytes, OFFSET.sequence),
    generation: readU32(bytes, OFFSET.generation),
    metaLength: readU16(bytes, OFFSET.meta),
  };
}

/** Decodes the meta bytes and encodes them again; nothing for no meta. */
function reencodeMeta(bytes: Uint8Array): Uint8Array {
  const meta: Meta = decodeMeta(bytes, metaStart(bytes, 0), bodyStart(bytes, 0));
  return encodeMeta(meta);
}

function reencodePayload(message: string, bytes: Uint8Array): Uint8Array {
  const name = message[0]!.toLowerCase() + message.slice(1);
  const codec = (payload as unknown as Record<string, payload.Codec<Record<string, unknown>>>)[name]!;
  const fields = payload.readPayload(codec, bytes, 0);
  const start = fields.start as payload.Start | undefined;
  // an absent `start` reads as `kept` from the beginning
  if (start?.from === payload.StartFrom.KEPT && start.sequence === 0) delete fields.start;
  return codec.encode(fields);
}

for (const fixture of messages) {
  test(`message fixture: ${fixture.name}`, () => {
    const bytes = fromHex(fixture.hex);
    assert.equal(headerFault(bytes, 0, bytes.length, MAX), undefined);
    assert.deepEqual(readHeader(bytes), fixture.header);
    assert.equal(typeName(fixture.header.type), fixture.type);
    const meta = bytes.subarray(metaStart(bytes, 0), bodyStart(bytes, 0));
    const rest = bytes.subarray(bodyStart(bytes, 0));
    if (fixture.meta !== undefined) {
      assert.deepEqual(toJson('Meta', meta), fixture.meta);
      assert.equal(toHex(fromJson('Meta', fixture.meta)), toHex(meta));
    } else {
      assert.equal(meta.length, 0);
    }
    if (fixture.payload !== undefined) {
      const { message, fields } = fixture.payload;
      assert.deepEqual(toJson(message, rest), fields);
      assert.equal(toHex(fromJson(message, fields)), toHex(rest));
      assert.equal(toHex(reencodePayload(message, bytes)), toHex(rest));
    } else {
      assert.equal(toHex(rest), fixture.body ?? '');
    }

    const extension = fromHex(fixture.extension ?? '');
    const written = new Uint8Array(bytes.length).fill(0xaa);
    writeHeader(written, 0, bytes.length, fixture.header);
    written[OFFSET.words] = (HEADER_BYTES + extension.length) / 4;
    written.set(extension, HEADER_BYTES);
    const metaAgain = reencodeMeta(bytes);
    written.set(metaAgain, metaStart(written, 0));
    written.set(rest, metaStart(written, 0) + metaAgain.length);
    assert.equal(toHex(written), fixture.hex);
  });
}

test('the fixtures cover every message of the schema and every type that has one', () => {
  const covered = new Set(messages.flatMap((fixture) => fixture.payload?.message ?? (fixture.meta ? 'Meta' : [])));
  const parts = ['Value', 'Start', 'PublishRefusal']; // stand inside others
  const declared = schema.lookup('trunkline') as protobuf.Namespace;
  const names = declared.nestedArray.filter((one) => one instanceof protobuf.Type).map((one) => one.name);
  assert.deepEqual(
    names.filter((name) => !covered.has(name) && !parts.includes(name)),
    [],
  );
  const types = new Set(messages.map((fixture) => fixture.header.type));
  assert.deepEqual(
    Object.values(Type).filter((type) => !types.has(type)),
    [],
  );
  const flags = messages.reduce((all, fixture) => all | fixture.header.flags, 0);
  for (const flag of [Flag.SNAPSHOT, Flag.SNAPSHOT_END, Flag.FINAL, Flag.REDELIVERED, Flag.JSON, Flag.TIMED])
    assert.ok(flags & flag);
});

function typesOf(batch: Uint8Array): string[] {
  const types: string[] = [];
  for (let at = 0; at < batch.length; at += readU32(batch, at)) types.push(typeName(batch[at + OFFSET.type]!));
  return types;
}

for (const fixture of batches) {
  test(`batch fixture: ${fixture.name}`, () => {
    const batch = fromHex(fixture.hex);
    if (fixture.types !== undefined) {
      checkBatch(batch, fixture.maxMessage);
      assert.deepEqual(typesOf(batch), fixture.types);
      return;
    }
    assert.throws(
      () => checkBatch(batch, fixture.maxMessage),
      (error) =>
        error instanceof BatchError &&
        error.code === 'BATCH_INVALID' &&
        error.fault === fixture.fault &&
        error.message.includes(`at byte ${fixture.at}:`),
    );
  });
}

test('a batch cut at any byte is refused whole, unless the cut falls between two messages', () => {
  const all = [...messages.map(({ hex }) => hex), ...batches.filter(({ types }) => types).map(({ hex }) => hex)];
  for (const hex of all) {
    const batch = fromHex(hex);
    const whole = new Set<number>();
    for (let at = 0; at < batch.length; at += readU32(batch, at)) whole.add(at + readU32(batch, at));
    for (let cut = 0; cut < batch.length; cut++) {
      const check = () => checkBatch(batch.subarray(0, cut), MAX);
      if (whole.has(cut)) check();
      else assert.throws(check, BatchError);
    }
  }
});
