import assert from 'node:assert/strict';
import { test } from 'node:test';
import { items, member, numbers, queueParts, settled, stored } from './queue-support.js';

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

test('F72: items of a killed consumer come first and in order to the next one', async () => {
  const parts = await queueParts();
  const one = await member(parts, { window: 5 });
  await items(parts, parts.provider(), 8);
  await stored(parts);
  assert.deepEqual(numbers(one.got), range(1, 5));
  one.kill();
  const next = await member(parts);
  assert.deepEqual(numbers(next.got), range(1, 8));
  assert.deepEqual(
    next.got.map(({ redelivered }) => redelivered),
    range(1, 8).map((each) => each <= 5),
  );
});

test('F72: a nack, a timeout and a lost session bring an item back by one rule', async () => {
  for (const way of ['nack', 'timeout', 'lost']) {
    const parts = await queueParts({ ackTimeout: '5s' });
    const one = await member(parts, { window: 5 });
    await items(parts, parts.provider(), 8);
    await stored(parts);
    const held = one.got.splice(0);
    let reader = one;
    if (way === 'nack') {
      // 3 to 5 are still out, and 6 to 8 were never delivered
      await settled(parts, held[1]!.nack());
      assert.deepEqual(numbers(one.got), [2]);
      for (const message of [held[0]!, ...held.slice(2)]) await settled(parts, message.ack());
      assert.deepEqual(numbers(one.got), [2, 6, 7, 8]);
      continue;
    }
    for (const message of held.slice(2)) await settled(parts, message.ack());
    if (way === 'timeout') await parts.advance(5500);
    else {
      one.kill();
      reader = await member(parts, { window: 5 });
    }
    await stored(parts);
    const back = reader.got.filter(({ redelivered }) => redelivered);
    assert.deepEqual(numbers(back).slice(0, 2), [1, 2], way);
  }
});
