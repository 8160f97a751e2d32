import assert from 'node:assert/strict';
import { test } from 'node:test';
import { items, member, numbers, queueParts, settled, stored } from './queue-support.js';

test('F74: new items go to the members that are there; a silent one keeps at most its window, for a while', async () => {
  const parts = await queueParts();
  const provider = parts.provider();
  const group = [
    await member(parts, { window: 5 }),
    await member(parts, { window: 50 }),
    await member(parts, { window: 50 }),
  ];
  group[0]!.kill();
  await stored(parts);
  await items(parts, provider, 20);
  await stored(parts);
  assert.equal(group[1]!.got.length + group[2]!.got.length, 20);
  assert.equal(group[0]!.got.length, 0);

  const silent = await member(parts, { window: 5 });
  parts.kill(silent.client.connection, false);
  await settled(
    parts,
    provider.publishMany(
      4001,
      Array.from({ length: 10 }, () => ({ body: '99' })),
    ),
  );
  await stored(parts);
  assert.ok(group[1]!.got.length + group[2]!.got.length >= 25);
  await parts.advance(10_000);
  assert.equal(group[1]!.got.length + group[2]!.got.length, 30);
});

test('F75: what a member held that is gone for good goes to another one, marked; what it acknowledged does not', async () => {
  const parts = await queueParts();
  const one = await member(parts, { window: 12 });
  await items(parts, parts.provider(), 12);
  await stored(parts);
  for (const message of one.got.slice(0, 2)) await settled(parts, message.ack());
  const other = await member(parts);
  assert.equal(other.got.length, 0);
  one.kill();
  await stored(parts);
  assert.deepEqual(numbers(other.got), [3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  assert.ok(other.got.every(({ redelivered, deliveries }) => redelivered && deliveries === 2));
});
