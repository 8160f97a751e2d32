// What is out when the dispatcher ends comes again, and nothing else does (F80).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Member, numbers, publisher, publishNumbers, queueWorld } from './members.js';

const again = (from: number) => numbers(from, 100).map((body) => [body, 2, true]);

test('kill -9 with 100 messages out: all come again, marked (F80)', async () => {
  await using world = await queueWorld();
  await using provider = await publisher(world);
  const member = await Member.start(world, { window: 100 });
  await publishNumbers(provider, 1, 100);
  await member.has(100);
  await world.restartDispatcher();
  const got = (await member.has(200)).slice(100);
  assert.deepEqual(
    got.map(({ body, deliveries, redelivered }) => [body, deliveries, redelivered]),
    again(1),
  );
  // what was delivered before the end is not the member's any more
  const results = await member.ack(200);
  assert.deepEqual([...new Set(results.slice(0, 100))], ['NOT_HELD']);
  assert.deepEqual([...new Set(results.slice(100))], ['ok']);
});

test('SIGTERM with 100 messages out: acknowledgements within the drain time count, the rest comes again (F80)', async () => {
  await using world = await queueWorld({}, { drain: '2s' });
  await using provider = await publisher(world);
  const member = await Member.start(world, { window: 100 });
  await publishNumbers(provider, 1, 100);
  await member.has(100);
  world.dispatcher.signal('SIGTERM');
  await world.logged('stopping');
  assert.deepEqual(await member.ack(40), numbers(1, 40).fill('ok'));
  assert.deepEqual((await world.dispatcher.ended()).code, 0);
  const [{ unacknowledged } = {}] = world.logs('dispatcher stopped');
  assert.equal(unacknowledged, 60);
  await world.startDispatcher();
  const got = (await member.has(160)).slice(100);
  assert.deepEqual(
    got.map(({ body, deliveries, redelivered }) => [body, deliveries, redelivered]),
    again(41),
  );
});

test('SIGTERM with 100 messages out that are all acknowledged: the dispatcher does not wait any longer (F80)', async () => {
  await using world = await queueWorld({}, { drain: '1m' });
  await using provider = await publisher(world);
  const member = await Member.start(world, { window: 100 });
  await publishNumbers(provider, 1, 100);
  await member.has(100);
  world.dispatcher.signal('SIGTERM');
  await world.logged('stopping');
  assert.deepEqual(await member.ack(100), numbers(1, 100).fill('ok'));
  assert.deepEqual((await world.dispatcher.ended()).code, 0);
  await world.startDispatcher();
  await publishNumbers(provider, 101, 101);
  const [next] = (await member.has(101)).slice(100);
  assert.deepEqual([next!.body, next!.redelivered], ['101', false]);
});
