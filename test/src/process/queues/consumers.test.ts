// Members of groups that are killed or stopped (F74, F75).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../../support/wait.js';
import { Member, numbers, publisher, publishNumbers, queueWorld } from './members.js';

const sorted = (bodies: readonly string[]) => [...bodies].sort((one, other) => Number(one) - Number(other));

test('a member of three is killed: everything new goes to the other two at once (F74)', async () => {
  await using world = await queueWorld();
  await using provider = await publisher(world);
  const [one, two, three] = [
    await Member.start(world, { acks: true }),
    await Member.start(world, { acks: true }),
    await Member.start(world, { acks: true }),
  ];
  await publishNumbers(provider, 1, 30);
  const all = async () => (await Promise.all([one, two, three].map((member) => member.got()))).flat();
  await until(async () => (await all()).length === 30, 'three share');
  await three.child.kill();
  await publishNumbers(provider, 31, 130);
  await until(async () => {
    const bodies = [...(await one.got()), ...(await two.got())].map(({ body }) => Number(body));
    return bodies.filter((body) => body > 30).length === 100;
  }, 'two share');
  for (const member of [one, two]) assert.ok((await member.got()).length > 30);
  const client = await world.client();
  await until(async () => (await client.queues.list())[0]!.messages === 0, 'nothing waits for the one that is gone');
});

test('a member that is frozen delays at most its window, for as long as a session may be silent (F74)', async () => {
  await using world = await queueWorld();
  await using provider = await publisher(world);
  const frozen = await Member.start(world, { window: 10 });
  const other = await Member.start(world, { window: 10, acks: true });
  frozen.child.signal('SIGSTOP');
  await publishNumbers(provider, 1, 100);
  const before = await other.has(90);
  assert.ok(before.length <= 100);
  const after = await other.has(100);
  const late = after.filter(({ redelivered }) => redelivered);
  assert.ok(late.length <= 10, `${late.length} were delayed`);
  assert.deepEqual(sorted(after.map(({ body }) => body)), numbers(1, 100));
  frozen.child.signal('SIGCONT');
});

test('a member with unacknowledged messages is killed: another gets all, marked, and nothing that was acked (F75)', async () => {
  await using world = await queueWorld();
  await using provider = await publisher(world);
  const first = await Member.start(world, { window: 10 });
  await publishNumbers(provider, 1, 15);
  await first.has(10);
  assert.deepEqual(await first.ack(5), numbers(1, 5).fill('ok'));
  await first.has(15);
  const second = await Member.start(world, { window: 10, acks: true });
  await first.child.kill();
  const got = await second.has(10);
  assert.deepEqual(
    got.map(({ body, deliveries, redelivered }) => [body, deliveries, redelivered]),
    numbers(6, 15).map((body) => [body, 2, true]),
  );
  const client = await world.client();
  await until(async () => (await client.queues.list())[0]!.messages === 0, 'all is acknowledged');
  assert.equal((await second.got()).length, 10);
});
