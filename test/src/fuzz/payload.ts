import assert from 'node:assert/strict';
import {
  type AttributeValue,
  decodeMeta,
  decodeParams,
  encodeMeta,
  encodeParams,
  HEADER_BYTES,
  payload,
  TrunklineError,
  Type,
  writeHeader,
} from '@trunkline/proto';
import { below, mutate, pick, randomBytes } from './random.js';

type AnyCodec = payload.Codec<Record<string, unknown>>;
const readers = Object.values(payload).filter(
  (value) => typeof value === 'object' && 'decode' in value,
) as unknown as payload.Readable<Record<string, unknown>>[];
const codecs = readers.filter((reader): reader is AnyCodec => 'encode' in reader);

function randomText(random: () => number): string {
  return pick(random, ['', 'a', 'ACME', 'é€😀', '__proto__', 'x'.repeat(below(random, 200))]);
}

function randomValue(random: () => number): AttributeValue {
  const bits = BigInt(below(random, 2 ** 32)) * 2n ** 32n + BigInt(below(random, 2 ** 32));
  return pick<AttributeValue>(random, [
    randomText(random),
    random() < 0.5,
    random() * 1e6,
    below(random, 1000) - 500,
    bits,
    BigInt.asIntN(64, bits),
    randomBytes(random, below(random, 9)),
  ]);
}

function randomMeta(random: () => number): Uint8Array {
  const attrs = Object.fromEntries(
    Array.from({ length: below(random, 5) }, () => [randomText(random), randomValue(random)]),
  );
  return encodeMeta({ tag: randomText(random), key: randomText(random), contentType: randomText(random), attrs });
}

/** Some fields of every codec, as the wire has them: numbers and texts under low field numbers. */
function randomPayload(random: () => number): Uint8Array {
  const kind = pick(random, codecs);
  const bytes = randomBytes(random, below(random, 8));
  const fields = {
    request: below(random, 2 ** 32),
    code: randomText(random),
    message: randomText(random),
    params: bytes,
    nonce: bytes,
  };
  return kind.encode(fields);
}

function onlyCode(code: string, run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    assert.ok(error instanceof TrunklineError && error.code === code, `threw ${String(error)}, not ${code}`);
    return undefined;
  }
}

/** Meta, control payloads and params: bad bytes give the coded error of their kind; good ones survive a round trip. */
export function fuzzPayload(random: () => number, rounds: number): void {
  for (let round = 0; round < rounds; round++) {
    const meta = mutate(random, randomMeta(random));
    const read = onlyCode('META_INVALID', () => decodeMeta(meta, 0, meta.length)) as ReturnType<typeof decodeMeta>;
    if (read !== undefined) {
      const again = Uint8Array.from(encodeMeta(read));
      assert.deepEqual(decodeMeta(again, 0, again.length), read);
    }
    const body = random() < 0.2 ? randomBytes(random, below(random, 40)) : mutate(random, randomPayload(random));
    const message = new Uint8Array(HEADER_BYTES + body.length);
    writeHeader(message, 0, message.length, { type: Type.REQUEST });
    message.set(body, HEADER_BYTES);
    for (const kind of readers) onlyCode('BATCH_INVALID', () => payload.readPayload(kind, message, 0));
    const params = mutate(
      random,
      encodeParams({ text: randomText(random), list: [below(random, 9), null, { deep: random() }] }),
    );
    const value = onlyCode('PARAMS_INVALID', () => decodeParams(params));
    if (value !== undefined)
      onlyCode('PARAMS_INVALID', () => assert.deepEqual(decodeParams(encodeParams(value)), value));
  }
}
