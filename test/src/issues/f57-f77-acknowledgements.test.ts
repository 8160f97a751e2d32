import assert from 'node:assert/strict';
import { test } from 'node:test';
import { items, member, queueParts, settled, stored } from './queue-support.js';

test('F77: a wrong acknowledgement is an error of its own call', async () => {
  const parts = await queueParts();
  const one = await member(parts, { window: 5 });
  const other = await member(parts, { window: 5 });
  await items(parts, parts.provider(), 10);
  await stored(parts);
  const [first, second, third] = one.got;
  await settled(parts, first!.ack());
  await assert.rejects(settled(parts, first!.ack()), { code: 'NOT_HELD' });
  await settled(parts, second!.nack({ delayMs: 60_000 }));
  await assert.rejects(settled(parts, second!.ack()), { code: 'NOT_HELD' });
  const { session } = one.client.connection;
  assert.ok(session !== undefined);
  // an id from before a reconnect
  parts.made.network.cut(parts.made.configuration.listen[0]!.address);
  await parts.settle();
  parts.made.network.restore(parts.made.configuration.listen[0]!.address);
  await parts.advance(5000);
  await assert.rejects(settled(parts, third!.ack()), { code: 'NOT_HELD' });
  // nothing was disturbed: both consumers are there and hold everything that is not done with
  const { queues } = parts.made.dispatcher;
  assert.equal(queues.find(4001)!.groups.get('g')!.outstanding, 8);
  assert.equal(one.consumption.state, 'active');
  assert.equal(other.consumption.state, 'active');
});

test('F57: a delay out of range is an error of its own call; the other items stay out', async () => {
  const parts = await queueParts();
  const one = await member(parts);
  await items(parts, parts.provider(), 3);
  await stored(parts);
  for (const delayMs of [1e12, -1, 1.5, Number.NaN]) {
    await assert.rejects(settled(parts, one.got[0]!.nack({ delayMs })), { code: 'OPTION_INVALID' });
  }
  for (const timeMs of [0, 1e12, 1.5]) {
    await assert.rejects(settled(parts, one.got[0]!.extend({ timeMs })), { code: 'OPTION_INVALID' });
  }
  assert.equal(parts.made.dispatcher.queues.find(4001)!.groups.get('g')!.outstanding, 3);
  for (const message of one.got) await settled(parts, message.ack());
});
