import assert from 'node:assert/strict';
import {
  bodyStart,
  HEADER_BYTES,
  headerFault,
  MAX_SEQUENCE,
  metaStart,
  OFFSET,
  readU32,
  readU53,
  Type,
  writeHeader,
} from '@trunkline/proto';
import { below, embed, guarded, mutate, pick, randomBytes } from './random.js';

const TYPES = Object.values(Type);

/** One message with random fields. */
export function randomMessage(random: () => number): Uint8Array {
  const metaLength = below(random, 20);
  const bytes = randomBytes(random, HEADER_BYTES + metaLength + below(random, 20));
  const sequence = Math.floor(random() ** 4 * MAX_SEQUENCE);
  const u32 = () => below(random, 2 ** 32);
  writeHeader(bytes, 0, bytes.length, {
    type: pick(random, TYPES),
    code: u32(),
    line: u32(),
    generation: u32(),
    sequence,
    metaLength,
  });
  return bytes;
}

/** `headerFault` never throws nor reads past the end, and what it lets pass lies inside the batch. */
export function fuzzHeader(random: () => number, rounds: number): void {
  for (let round = 0; round < rounds; round++) {
    const bytes = random() < 0.3 ? randomBytes(random, below(random, 80)) : mutate(random, randomMessage(random));
    const maxMessage = pick(random, [32, 40, 64, 1048576]);
    const fault = headerFault(guarded(bytes), 0, bytes.length, maxMessage);
    const { buffer, at, end } = embed(bytes, below(random, 10));
    assert.equal(headerFault(buffer, at, end, maxMessage), fault, 'what lies around a message does not matter');
    if (fault !== undefined) continue;
    const length = readU32(bytes, 0);
    assert.ok(length >= HEADER_BYTES && length <= bytes.length && length <= maxMessage);
    assert.ok(metaStart(bytes, 0) >= HEADER_BYTES && bodyStart(bytes, 0) <= length);
    assert.ok(Number.isSafeInteger(readU53(bytes, OFFSET.sequence)));
  }
}
