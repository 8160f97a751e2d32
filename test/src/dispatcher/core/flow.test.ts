import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DispatcherWorld, nothing, type RawPeer, type Received } from '../../support/dispatcher-world.js';

const KIB = 1024;

/** A provider of code 100 whose stream has a slow subscriber with a window of 4 KiB and a fast one. */
async function slowAndFast(overflow: string, outbox = '8KiB') {
  const world = await DispatcherWorld.start(
    [{ code: 100, providers: 'dynamic', overflow: ['dropOldest', 'latest', 'disconnect', 'block'] }],
    { session: { outbox, receiveWindow: '64KiB' } },
  );
  const provider = await world.provider(100);
  const slow = await world.peer({ receiveWindow: 4 * KIB });
  slow.consuming = false;
  const fast = await world.peer();
  slow.request(100, 1, { overflow });
  fast.request(100, 1);
  await world.settle();
  const [request] = provider.take('REQUEST');
  return { world, provider, slow, fast, request: request! };
}

async function send(
  world: DispatcherWorld,
  provider: RawPeer,
  request: Received,
  from: number,
  to: number,
  key?: (n: number) => string,
) {
  for (let n = from; n <= to; n++) {
    provider.respond(request, `${n}`.padEnd(960, '.'), key ? { key: key(n) } : {});
    await world.settle();
  }
}

const numbers = (received: Received[]) =>
  received.filter(({ type }) => type === 'RESPONSE').map(({ body }) => Number.parseInt(body, 10));
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

test('dropOldest: memory stays in its bound, the gap says how many and which, the fast one misses nothing', async () => {
  const { world, provider, slow, fast, request } = await slowAndFast('dropOldest');
  await send(world, provider, request, 1, 40);
  const { outbox } = [...world.dispatcher.peers.values()][1]!;
  assert.ok(outbox.bytes <= 8 * KIB, `${outbox.bytes} bytes wait`);
  slow.resume();
  await world.settle();
  await send(world, provider, request, 41, 42);
  assert.deepEqual(numbers(fast.take()), range(1, 42));
  const got = slow.take();
  const gaps = got.filter(({ type }) => type === 'GAP').map(({ fields }) => fields);
  const delivered = numbers(got);
  assert.equal(gaps.length, 1);
  const [gap] = gaps;
  assert.deepEqual(
    [...delivered, ...range(Number(gap!.first), Number(gap!.last))].sort((a, b) => a - b),
    range(1, 42),
  );
  assert.equal(gap!.count, Number(gap!.last) - Number(gap!.first) + 1);
  const at = got.findIndex(({ type }) => type === 'GAP');
  assert.ok(
    got.slice(0, at).every(({ sequence }) => sequence < Number(gap!.first)),
    'told in its place',
  );
  assert.deepEqual(
    delivered,
    [...delivered].sort((a, b) => a - b),
  );
});

test('dropOldest: long runs that wait are not mixed up with those that came after them', async () => {
  const { world, provider, slow, fast, request } = await slowAndFast('dropOldest', '100KiB');
  const lengths = [20, 33, 17, 20, 40, 25, 18, 20, 60, 30];
  const body = (n: number) => `${n}`.padEnd(960, String.fromCharCode(97 + (n % 26)));
  let sent = 0;
  const sendRuns = async () => {
    for (const length of lengths) {
      for (let left = length; left > 0; left--) provider.respond(request, body(++sent));
      await world.settle();
    }
  };
  const check = () => {
    const got = slow.take();
    const told = got.flatMap(({ type, fields }) =>
      type === 'GAP' ? range(Number(fields.first), Number(fields.last)) : [],
    );
    const responses = got.filter(({ type }) => type === 'RESPONSE');
    for (const response of responses) assert.equal(response.body, body(response.sequence));
    assert.ok(told.length > 0 && responses.length > 0);
    return [...told, ...responses.map(({ sequence }) => sequence)];
  };
  await sendRuns();
  await sendRuns();
  const { outbox } = [...world.dispatcher.peers.values()][1]!;
  assert.ok(outbox.bytes > 0 && outbox.bytes <= 100 * KIB, `${outbox.bytes} bytes wait`);
  slow.resume();
  await world.settle();
  slow.consuming = false;
  // what was sent may still be with the transport: it must not change while the next runs wait
  await sendRuns();
  slow.resume();
  await world.settle();
  assert.deepEqual(
    check().sort((a, b) => a - b),
    range(1, sent),
  );
  assert.deepEqual(numbers(fast.take()), range(1, sent));
});

test('latest: without credit only the newest of each key waits, in the order of sequences', async () => {
  const { world, provider, slow, request } = await slowAndFast('latest');
  await send(world, provider, request, 1, 40, (n) => `k${n % 3}`);
  slow.resume();
  await world.settle();
  const delivered = numbers(slow.take());
  assert.deepEqual(delivered.slice(-3), [38, 39, 40]);
  assert.deepEqual(delivered.slice(0, -3), range(1, delivered.length - 3));
  assert.equal(world.dispatcher.core.counters.conflated, 40 - delivered.length);
});

test('disconnect: the session that falls behind is ended with a code, the others go on', async () => {
  const { world, provider, slow, fast, request } = await slowAndFast('disconnect');
  await send(world, provider, request, 1, 40);
  assert.equal(slow.closed, 'SLOW_CONSUMER');
  assert.deepEqual(numbers(fast.take()), range(1, 40));
  assert.equal(world.dispatcher.peers.size, 2);
});

test('block: nothing is lost, the provider runs out of credit, and goes on when the slow one has taken all', async () => {
  const { world, provider, slow, fast, request } = await slowAndFast('block');
  let n = 0;
  while (provider.session.credit > 0) await send(world, provider, request, n + 1, ++n);
  assert.ok(n > 60 && n < 90, `${n} responses fill the window`);
  slow.request(100, 9, { params: 'control messages pass' });
  await world.settle();
  assert.equal(provider.take('REQUEST').length, 1);
  slow.resume();
  await world.settle();
  assert.ok(provider.session.credit > 0);
  await send(world, provider, request, n + 1, n + 5);
  assert.deepEqual(numbers(slow.take()), range(1, n + 5));
  assert.deepEqual(numbers(fast.take()), range(1, n + 5));
});

test('block: a blocked subscriber that dies gives the provider its credit back', async () => {
  const { world, provider, slow, request } = await slowAndFast('block');
  let n = 0;
  while (provider.session.credit > 0) await send(world, provider, request, n + 1, ++n);
  slow.link.cut();
  await world.settle();
  assert.ok(provider.session.credit > 32 * KIB);
});

test('a subscription that leaves takes its waiting responses with it; the rest of the session goes on', async () => {
  const { world, provider, slow, request } = await slowAndFast('dropOldest');
  slow.request(100, 2, { filter: 'key == "a"' });
  await world.settle();
  await send(world, provider, request, 1, 9, (n) => (n % 2 ? 'a' : 'b'));
  slow.cancel(1);
  await world.settle();
  slow.take();
  slow.resume();
  await world.settle();
  const got = slow.take();
  assert.ok(got.length > 0);
  assert.ok(got.every(({ body }) => Number.parseInt(body, 10) % 2 === 1));
  slow.cancel(2);
  await world.settle();
  assert.equal(world.dispatcher.core.filters.size, 0);
});

test('a message larger than a subscriber takes is a gap for it alone', async () => {
  const world = await DispatcherWorld.start([{ code: 100, providers: 'dynamic' }]);
  const provider = await world.provider(100);
  const small = await world.peer({ maxMessage: 1000 });
  const large = await world.peer();
  for (const peer of [small, large]) peer.request(100, 1);
  await world.settle();
  const [request] = provider.take('REQUEST');
  for (const size of [10, 2000, 20]) provider.respond(request!, 'x'.repeat(size));
  await world.settle();
  assert.deepEqual(
    large.take('RESPONSE').map(({ body }) => body.length),
    [10, 2000, 20],
  );
  const got = small.take().slice(1);
  assert.deepEqual(
    got.map(({ type, body, fields }) => (type === 'GAP' ? [fields.first, fields.last] : body.length)),
    [10, [2, 2], 20],
  );
});

test('group: each response goes to one member, the one with the least outstanding', async () => {
  const world = await DispatcherWorld.start([{ code: 100, providers: 'dynamic' }]);
  const provider = await world.provider(100);
  const window = { receiveWindow: 4 * KIB };
  const members = [await world.peer(window), await world.peer(window), await world.peer(window)];
  for (const member of members) member.request(100, 1, { returnHandler: 'group', group: 'g' });
  await world.settle();
  const [request] = provider.take('REQUEST');
  members[0]!.consuming = false;
  await send(world, provider, request!, 1, 30);
  const got = members.map((member) => numbers(member.take()));
  assert.deepEqual(
    got.flat().sort((a, b) => a - b),
    range(1, 30),
  );
  assert.ok(got[0]!.length < 3, 'the one that consumes nothing gets hardly any');
  members[1]!.link.cut();
  await world.settle();
  await send(world, provider, request!, 31, 34);
  assert.deepEqual(numbers(members[2]!.take()), range(31, 34));
});

test('latest: at most `rate` a second per key, the newest wins, an END flushes what is held', async () => {
  const world = await DispatcherWorld.start([{ code: 100, providers: 'dynamic' }]);
  const provider = await world.provider(100);
  const peer = await world.peer();
  peer.request(100, 1, { returnHandler: 'latest', rate: 10 });
  await world.settle();
  const [request] = provider.take('REQUEST');
  await send(world, provider, request!, 1, 9, (n) => (n % 2 ? 'a' : 'b'));
  assert.deepEqual(numbers(peer.take()), [1, 2]);
  await world.advance(101);
  assert.deepEqual(numbers(peer.take()).sort(), [8, 9]);
  await send(world, provider, request!, 10, 13, () => 'a');
  provider.end(request!);
  await world.settle();
  assert.deepEqual(
    peer.take().map(({ type, body }) => [type, Number.parseInt(body, 10) || 0]),
    [
      ['RESPONSE', 13],
      ['END', 0],
    ],
  );
  assert.deepEqual(world.leftovers(), nothing);
});

for (const overflow of ['dropOldest', 'latest']) {
  test(`${overflow}: a peer that never takes anything costs a bounded queue, however much is dropped`, async () => {
    const { world, provider, slow, request } = await slowAndFast(overflow);
    const { outbox } = [...world.dispatcher.peers.values()][1]!;
    await send(world, provider, request, 1, 1200, (n) => `key ${n}`);
    assert.ok(outbox.length < 600, `${outbox.length} places`);
    slow.resume();
    await world.settle();
    const got = slow.take();
    const gaps = got.filter(({ type }) => type === 'GAP').map(({ fields }) => Number(fields.count));
    assert.equal(numbers(got).length + gaps.reduce((sum, count) => sum + count, 0), 1200);
    assert.deepEqual([outbox.length, outbox.bytes], [0, 0]);
  });
}

/** A slow subscriber of code 100 whose session has used up its credit, and its outbox. */
async function exhausted(overflow: string, returnHandler = 'broadcast') {
  const made = await DispatcherWorld.start(
    [
      {
        code: 100,
        providers: 'dynamic',
        overflow: ['dropOldest', 'latest', 'disconnect', 'block'],
        returnHandlers: ['broadcast', 'latest'],
        latestRate: 100,
      },
    ],
    { session: { outbox: '8KiB', receiveWindow: '64KiB' } },
  );
  const provider = await made.provider(100);
  const slow = await made.peer({ receiveWindow: 1 * KIB });
  slow.consuming = false;
  slow.request(100, 1, { overflow, returnHandler });
  await made.settle();
  const { outbox } = [...made.dispatcher.peers.values()][1]!;
  return { made, provider, slow, outbox, request: provider.take('REQUEST')[0]! };
}

test('latest: keys that were sent are not remembered, however many there are', async () => {
  const { made, provider, slow, outbox, request } = await exhausted('latest');
  for (let n = 1; n <= 500; n++) {
    provider.respond(request, `${n}`.padEnd(400, '.'), { key: `key ${n}` });
    await made.settle();
    // never so much that the queue is empty
    if (n > 8) slow.session.consume(400);
    await made.settle();
  }
  assert.ok(outbox.waiting);
  assert.ok(outbox.remembered <= 40, `${outbox.remembered} keys`);
});

test('a response that is too large for the subscriber is told at once, also when no other follows', async () => {
  const made = await DispatcherWorld.start([{ code: 100, providers: 'dynamic' }]);
  const provider = await made.provider(100);
  const small = await made.peer({ maxMessage: 500 });
  small.request(100, 1);
  await made.settle();
  provider.respond(provider.take('REQUEST')[0]!, 'x'.repeat(1000));
  await made.settle();
  assert.deepEqual(
    small.take('GAP').map(({ fields }) => [fields.count, fields.first, fields.last]),
    [[1, 1, 1]],
  );
});

test('block with a return handler that sends by its own timer is bounded too: the session ends', async () => {
  const { made, provider, slow, outbox, request } = await exhausted('block', 'latest');
  let most = 0;
  for (let n = 1; n <= 400 && slow.closed === undefined; n++) {
    if (provider.session.credit > 0) provider.respond(request, `${n}`.padEnd(400, '.'), { key: 'one' });
    await made.advance(3);
    most = Math.max(most, outbox.bytes);
  }
  // what holds the provider back is bounded by its window, the rest by the outbox
  assert.ok(most <= (64 + 8 + 1) * KIB, `${most} bytes waited`);
  assert.equal(slow.closed, 'SLOW_CONSUMER');
});

test('a subscriber that leaves all its lines with a full outbox gives everything back', async () => {
  const { made, provider, slow, outbox } = await exhausted('block');
  const requests = 80;
  for (let n = 2; n <= requests; n++) slow.request(100, n, { overflow: 'block', params: n });
  await made.settle();
  for (let batch = provider.take('REQUEST'); batch.length > 0; batch = provider.take('REQUEST')) {
    for (const each of batch) if (provider.session.credit > 0) provider.respond(each, 'x');
    await made.settle();
  }
  assert.ok(outbox.bytes > 0);
  for (let n = 1; n <= requests; n++) slow.cancel(n);
  await made.settle();
  assert.equal(outbox.bytes, 0);
  assert.deepEqual(made.leftovers(), nothing);
  assert.equal(provider.session.outstanding < 16 * KIB, true, 'the provider has its credit back');
});

test('group: a member that is about to be ended because it fell behind gets no share any more', async () => {
  const made = await DispatcherWorld.start(
    [{ code: 100, providers: 'dynamic', overflow: ['disconnect', 'dropOldest'], returnHandlers: ['group'] }],
    { session: { outbox: '1KiB' } },
  );
  const provider = await made.provider(100);
  const slow = await made.peer({ receiveWindow: 1 * KIB });
  slow.consuming = false;
  slow.request(100, 1, { group: 'g', overflow: 'disconnect' });
  await made.settle();
  const [request] = provider.take('REQUEST');
  provider.respond(request!, 'x'.repeat(2 * KIB));
  await made.settle();
  const steady = await made.peer({ receiveWindow: 16 * KIB });
  steady.consuming = false;
  steady.request(100, 1, { group: 'g', overflow: 'dropOldest' });
  await made.settle();
  provider.respond(request!, 'x'.repeat(10 * KIB));
  await made.settle();
  assert.equal(steady.take('RESPONSE').length, 1);
  for (let n = 1; n <= 10; n++) provider.respond(request!, `${n}`.padEnd(300, '.'));
  await made.settle();
  assert.equal(slow.closed, 'SLOW_CONSUMER');
  // three waited for the slow one and went with it, as did the fourth, which was too much
  assert.deepEqual(numbers(steady.take()), range(5, 10));
});
