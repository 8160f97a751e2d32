import assert from 'node:assert/strict';
import { test } from 'node:test';
import { items, member, numbers, QUEUE, queueParts, settled, stored } from './queue-support.js';

test('F80: what was delivered and not acknowledged comes again after a kill', async () => {
  const parts = await queueParts();
  const one = await member(parts, { window: 100 });
  await items(parts, parts.provider(), 100);
  await stored(parts);
  assert.equal(one.got.length, 100);
  const before = one.got.splice(0);
  for (const message of before.slice(0, 10)) void message.ack();
  await stored(parts);
  await parts.made.restart();
  await parts.advance(5000);
  assert.deepEqual(numbers(one.got), numbers(before.slice(10)));
  assert.ok(one.got.every(({ redelivered }) => redelivered));
});

test('F80: at a stop nothing new is handed out, and acknowledgements within the drain time count', async () => {
  const parts = await queueParts();
  const provider = parts.provider();
  const one = await member(parts, { window: 50 });
  await items(parts, provider, 100);
  await stored(parts);
  assert.equal(one.got.length, 50);
  const stopping = parts.made.dispatcher.stop();
  await parts.advance(100);
  const acked = one.got.slice(0, 40).map((message) => message.ack());
  await stored(parts);
  await Promise.all(acked);
  assert.equal(one.got.length, 50);
  await parts.advance(6000);
  assert.equal((await stopping).unacknowledged, 10);
  await parts.made.restart();
  await parts.advance(5000);
  assert.deepEqual(numbers(one.got.slice(50)).slice(0, 12), [41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52]);
});

test('F81: kills during publishes and acknowledgements lose nothing that was confirmed', async () => {
  const parts = await queueParts();
  const provider = parts.provider();
  const acked = new Set<string>();
  const perhaps = new Set<string>();
  const wrong: string[] = [];
  parts.client().consume(QUEUE, { group: 'g', ack: 'manual', window: 20 }, async (message) => {
    const text = message.text();
    if (acked.has(text) || !/^n\d+$/.test(text)) wrong.push(text);
    await message.ack().then(
      () => acked.add(text),
      () => perhaps.add(text),
    );
  });
  const confirmed: Promise<number>[] = [];
  let number = 0;
  for (let round = 0; round < 10; round++) {
    for (let index = 0; index < 40; index++) confirmed.push(provider.publish(QUEUE, `n${++number}`));
    await parts.advance(1 + (round % 4));
    await parts.made.restart();
    await parts.advance(3000);
  }
  const sequences = await settled(parts, Promise.all(confirmed));
  await parts.advance(3000);
  assert.equal(new Set(sequences).size, number);
  assert.deepEqual(wrong, []);
  assert.equal(new Set([...acked, ...perhaps]).size, number);
  assert.equal(parts.made.dispatcher.queues.find(QUEUE)!.last, number);
});
