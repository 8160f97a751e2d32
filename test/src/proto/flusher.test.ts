import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Flusher, HEADER_BYTES, Outgoing, Type } from '@trunkline/proto';

test('one that fails to flush keeps nobody else from it, and is reported', () => {
  const faults: unknown[] = [];
  const flushed: string[] = [];
  const flusher = new Flusher(
    () => {},
    (error) => faults.push(error),
  );
  flusher.hold();
  flusher.add({ flush: () => flushed.push('first') });
  flusher.add({
    flush: () => {
      throw new Error('a bug');
    },
  });
  flusher.add({ flush: () => flushed.push('third') });
  flusher.release();
  flusher.release();
  assert.deepEqual(flushed, ['first', 'third']);
  assert.equal(faults.length, 1);
});

test('without anybody who hears of it the failure is thrown, after all others', () => {
  const flushed: string[] = [];
  const flusher = new Flusher(() => {});
  flusher.add({
    flush: () => {
      throw new Error('a bug');
    },
  });
  flusher.add({ flush: () => flushed.push('second') });
  assert.throws(() => flusher.flush(), /a bug/);
  assert.deepEqual(flushed, ['second']);
  flusher.flush();
});

test('what is added within a flush is flushed in the same one, and a flush within it disturbs nothing', () => {
  const flushed: string[] = [];
  const flusher = new Flusher(() => {});
  flusher.add({
    flush: () => {
      flushed.push('first');
      flusher.add({ flush: () => flushed.push('third') });
      flusher.flush();
    },
  });
  flusher.add({ flush: () => flushed.push('second') });
  flusher.flush();
  assert.deepEqual(flushed, ['first', 'second', 'third']);
});

test('a session that says little holds little memory, one that says much gets room for whole batches', () => {
  const outgoing = new Outgoing();
  const sent: Uint8Array[] = [];
  const link = { send: (batch: Uint8Array) => sent.push(batch) };
  for (let count = 0; count < 100; count++) {
    outgoing.message({ type: Type.CREDIT });
    outgoing.flush(link);
  }
  assert.ok(Math.max(...sent.map(({ buffer }) => buffer.byteLength)) <= 1024);
  sent.length = 0;
  for (let round = 0; round < 3; round++) {
    for (let count = 0; count < 16384; count++) outgoing.message({ type: Type.CREDIT });
    outgoing.flush(link);
  }
  assert.equal(
    sent.reduce((sum, batch) => sum + batch.length, 0),
    3 * 16384 * HEADER_BYTES,
  );
  assert.equal(sent.at(-2)?.buffer.byteLength, 262144);
  outgoing.rest();
  outgoing.message({ type: Type.CREDIT });
  outgoing.flush(link);
  assert.ok((sent.at(-1)?.buffer.byteLength ?? 0) <= 1024, 'little again');
});
