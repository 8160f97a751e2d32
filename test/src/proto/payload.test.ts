import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HEADER_BYTES, paramsKey, payload, singleMessage, Type } from '@trunkline/proto';
import fc from 'fast-check';

/** Encodes and decodes with the generated code alone. */
interface Generated {
  encode(value: object): { finish(): Uint8Array };
}

const schema = new URL('../../../proto/dist/generated/schema.js', import.meta.url);
const { trunkline } = (await import(schema.href)) as { trunkline: Record<string, Generated> };

const bytes = fc.uint8Array({ maxLength: 200 });
const text = fc.oneof(
  fc.string({ unit: 'binary-ascii', maxLength: 160 }),
  fc.string({ unit: 'grapheme', maxLength: 20 }),
);
const u32 = fc.oneof(fc.nat({ max: 300 }), fc.integer({ min: 0, max: 0xffffffff }));
const start = fc.record({
  from: fc.constantFrom(0, 1, 2),
  sequence: fc.oneof(u32, fc.maxSafeNat()),
  epoch: fc.uint8Array({ maxLength: 140 }),
});

interface Kind {
  readonly codec: payload.Codec<object>;
  readonly values: fc.Arbitrary<object>;
}

const kinds: Record<string, Kind> = {
  Request: {
    codec: payload.request as payload.Codec<object>,
    values: fc.record(
      {
        request: u32,
        params: bytes,
        filter: text,
        returnHandler: text,
        group: text,
        rate: u32,
        overflow: text,
        start,
      },
      { requiredKeys: [] },
    ),
  },
  Upstream: {
    codec: payload.upstream as payload.Codec<object>,
    values: fc.record({ params: bytes }, { requiredKeys: [] }),
  },
  Cancel: {
    codec: payload.cancel as payload.Codec<object>,
    values: fc.record({ request: u32 }, { requiredKeys: [] }),
  },
  Accepted: {
    codec: payload.accepted as payload.Codec<object>,
    values: fc.record(
      { request: u32, epoch: bytes, snapshot: fc.boolean(), resumed: fc.boolean(), status: text },
      { requiredKeys: [] },
    ),
  },
};

/** With plain arrays in the place of bytes, of whatever class they are. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return [...value];
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plain(member)]));
}

/** What reading gives, or that there is nothing to read. */
function outcome(read: () => object): unknown {
  try {
    return plain(read());
  } catch {
    return 'unreadable';
  }
}

for (const [name, { codec, values }] of Object.entries(kinds)) {
  test(`${name}: the bytes and values are those of the generated codec`, () => {
    fc.assert(
      fc.property(values, (value) => {
        const encoded = codec.encode(value);
        assert.deepEqual([...encoded], [...trunkline[name]!.encode(value).finish()]);
        const message = singleMessage({ type: Type.REQUEST }, encoded);
        assert.deepEqual(plain(payload.readPayload(codec, message, 0)), plain(codec.decode(encoded)));
      }),
    );
  });

  test(`${name}: any other bytes are read as the generated codec reads them`, () => {
    // bytes that look like fields more often than not
    const piece = fc.oneof(
      fc.constantFrom(0x08, 0x0a, 0x10, 0x12, 0x18, 0x1a, 0x20, 0x22, 0x2a, 0x30, 0x3a, 0x42, 0x00, 0x01, 0x02, 0x80),
      fc.nat({ max: 255 }),
    );
    const garbage = fc.array(piece, { maxLength: 24 }).map((list) => Uint8Array.from(list));
    fc.assert(
      fc.property(garbage, (encoded) => {
        const message = singleMessage({ type: Type.REQUEST }, encoded);
        const read = outcome(() => payload.readPayload(codec, message, 0));
        assert.deepEqual(
          read,
          outcome(() => codec.decode(message.subarray(HEADER_BYTES))),
        );
      }),
      { numRuns: 2000 },
    );
  });
}

test('params of a key are encoded as the bytes it stands for', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), (params) => {
      const encoded = payload.upstream.encode({ params });
      assert.deepEqual(writtenBytes(payload.writeUpstream(paramsKey(params))), [...encoded]);
      const message = singleMessage({ type: Type.REQUEST }, encoded);
      assert.equal(payload.readPayload(payload.upstreamKey, message, 0).key, paramsKey(params));
    }),
  );
});

function writtenBytes({ bytes, length }: payload.Written): number[] {
  return [...bytes.subarray(0, length)];
}

test('a request is written as it is encoded, whether its params are bytes or text, and read with its key', () => {
  const start = { from: payload.StartFrom.AFTER, sequence: 7, epoch: Uint8Array.of(1, 2, 3) };
  const more = { filter: 'key == "ä"', returnHandler: 'latest', group: 'g', rate: 3, overflow: 'block' };
  const none = { filter: '', returnHandler: '', group: '', rate: 0, overflow: '' };
  const ascii = fc.string({ unit: 'binary-ascii', maxLength: 200 });
  fc.assert(
    fc.property(ascii, fc.boolean(), fc.integer({ min: 1, max: 2 ** 32 - 1 }), (text, plainly, request) => {
      const asked = plainly ? none : more;
      const params = new TextEncoder().encode(text);
      const encoded = payload.request.encode({ request, params, ...asked, start });
      assert.deepEqual(writtenBytes(payload.writeRequest(request, { params, ...asked }, start)), [...encoded]);
      assert.deepEqual(writtenBytes(payload.writeRequest(request, { params: text, ...asked }, start)), [...encoded]);
      const message = singleMessage({ type: Type.REQUEST }, encoded);
      const { key, ...read } = payload.readPayload(payload.keyedRequest, message, 0);
      assert.equal(key, text);
      assert.deepEqual(plain({ ...read, params: [] }), plain({ ...payload.request.decode(encoded), params: [] }));
    }),
  );
});

test('a request with any bytes as params is read with their key', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (params) => {
      const message = singleMessage({ type: Type.REQUEST }, payload.request.encode({ request: 1, params }));
      assert.equal(payload.readPayload(payload.keyedRequest, message, 0).key, paramsKey(params));
    }),
  );
});

test('an acceptance is written as it is encoded', () => {
  const values = fc.record({
    request: fc.nat({ max: 2 ** 32 - 1 }),
    epoch: fc.uint8Array({ maxLength: 200 }),
    snapshot: fc.boolean(),
    resumed: fc.boolean(),
    status: fc.constantFrom('', 'live', 'stale', 'ä'),
  });
  fc.assert(
    fc.property(values, (value) => {
      assert.deepEqual(writtenBytes(payload.writeAccepted(value)), [...payload.accepted.encode(value)]);
    }),
  );
});
