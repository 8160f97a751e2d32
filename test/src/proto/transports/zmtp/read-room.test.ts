import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ReadRoom } from '../../../../../proto/dist/transports/zmtp/read-room.js';

/** What a read finds there, in thousandths of the room it has. */
const reads = fc.array(fc.oneof(fc.integer({ min: 0, max: 1000 }), fc.constantFrom(0, 1, 250, 1000)), {
  maxLength: 40,
});

test('what was read stays as it was, however much is read behind it', () => {
  fc.assert(
    fc.property(reads, (parts) => {
      const room = new ReadRoom();
      const taken = parts.map((part, index) => {
        const place = room.next();
        assert.ok(place.length >= 16 * 1024 && place.length <= 1024 * 1024);
        const bytes = Math.max(1, Math.floor((place.length * part) / 1000));
        place.fill(index + 1, 0, bytes);
        return { bytes, chunk: room.take(bytes) };
      });
      for (const [index, { bytes, chunk }] of taken.entries()) {
        assert.equal(chunk.length, bytes);
        assert.ok(chunk.every((byte) => byte === index + 1));
      }
    }),
    { numRuns: 30 },
  );
});

test('a read that finds little keeps no more memory than it found; reads that fill their room get more, up to a bound', () => {
  const room = new ReadRoom();
  for (const bytes of [1, 100, 16 * 1024]) {
    room.next().fill(7, 0, bytes);
    assert.equal(room.take(bytes).buffer.byteLength, bytes);
  }
  const sizes: number[] = [];
  for (let round = 0; round < 7; round++) {
    const place = room.next();
    sizes.push(place.length / 1024);
    room.take(place.length);
  }
  assert.deepEqual(sizes, [64, 128, 256, 512, 1024, 1024, 1024]);
});
