import assert from 'node:assert/strict';
import { BatchError, checkBatch, headerFault, readU32 } from '@trunkline/proto';
import { randomMessage } from './header.js';
import { below, guarded, mutate, randomBytes } from './random.js';

const MAX = 1048576;

/** `checkBatch` throws nothing but `BatchError`, and passes only batches that consist of whole messages. */
export function fuzzBatch(random: () => number, rounds: number): void {
  for (let round = 0; round < rounds; round++) {
    const messages = Array.from({ length: 1 + below(random, 4) }, () => randomMessage(random));
    const good = Uint8Array.from(messages.flatMap((message) => [...message]));
    checkBatch(good, MAX);
    const bad = random() < 0.1 ? randomBytes(random, below(random, 200)) : mutate(random, good);
    let fault: string | undefined;
    try {
      checkBatch(guarded(bad), MAX);
    } catch (error) {
      assert.ok(error instanceof BatchError, `threw ${String(error)}`);
      fault = error.fault;
    }
    assert.equal(firstFault(bad), fault);
  }
}

/** The same question, asked message by message. */
function firstFault(batch: Uint8Array): string | undefined {
  let rest = batch;
  do {
    const fault = headerFault(rest, 0, rest.length, MAX);
    if (fault !== undefined) return fault;
    rest = rest.slice(readU32(rest, 0));
  } while (rest.length > 0);
  return undefined;
}
