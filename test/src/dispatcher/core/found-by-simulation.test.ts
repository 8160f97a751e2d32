import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Flag, payload } from '@trunkline/proto';
import { Client } from '@trunkline/subscriber/core';
import { Parts } from '../../issues/support.js';
import { configure, DispatcherWorld, noHandlers, type Received } from '../../support/dispatcher-world.js';

const { AFTER } = payload.StartFrom;
const types = (received: readonly Received[]) => received.map(({ type }) => type);
const numbers = (received: readonly Received[]) =>
  received.filter(({ type, body }) => type === 'RESPONSE' && body !== '').map(({ body }) => Number.parseInt(body, 10));

test('rule 9: a resume is told what a reload that changed keep has dropped', async () => {
  for (const keep of ['last', { ring: 20 }, { lastPerKey: 20 }]) {
    const made = await DispatcherWorld.start([{ code: 100, keep: { ring: 10 } }]);
    const provider = await made.provider(100);
    const peer = await made.peer();
    peer.request(100, 1);
    await made.settle();
    const [request] = provider.take('REQUEST');
    for (let n = 1; n <= 5; n++) provider.respond(request!, `${n}`);
    await made.settle();
    const epoch = peer.take('ACCEPTED')[0]!.fields.epoch as Uint8Array;
    made.dispatcher.reload(configure([{ code: 100, keep }]), noHandlers);
    const late = await made.peer();
    late.request(100, 1, { start: { from: AFTER, sequence: 3, epoch } });
    await made.settle();
    const [accepted, gap] = late.take();
    assert.deepEqual([accepted!.type, accepted!.fields.resumed], ['ACCEPTED', false], JSON.stringify(keep));
    assert.deepEqual(
      [gap!.type, gap!.fields],
      ['GAP', { count: 2, first: 4, last: 5, reason: 'history' }],
      JSON.stringify(keep),
    );
  }
});

test('rule 1: a reload from all to failover leaves one upstream', async () => {
  const made = await DispatcherWorld.start([{ code: 100, sendHandler: 'all' }]);
  const providers = [await made.provider(100), await made.provider(100), await made.provider(100)];
  const peer = await made.peer();
  peer.request(100, 1);
  await made.settle();
  for (const provider of providers) provider.answer(provider.take('REQUEST')[0]!);
  await made.settle();
  made.dispatcher.reload(configure([{ code: 100, sendHandler: 'failover' }]), noHandlers);
  await made.settle();
  const cancelled = providers.filter((provider) => provider.take('CANCEL').length > 0).length;
  assert.equal(cancelled, 2);
  const [stream] = made.dispatcher.registry.allStreams();
  assert.deepEqual(
    stream!.upstreams.map(({ generation }) => generation),
    [stream!.generation],
  );
});

test('rule 9: what latest held back before a subscriber joined is not delivered to it again', async () => {
  const made = await DispatcherWorld.start([{ code: 100, keep: 'last', returnHandlers: ['latest'] }]);
  const provider = await made.provider(100);
  const first = await made.peer();
  first.request(100, 1, { rate: 1 });
  await made.settle();
  const [request] = provider.take('REQUEST');
  provider.respond(request!, '1');
  provider.respond(request!, '2');
  await made.settle();
  const late = await made.peer();
  late.request(100, 1, { rate: 1 });
  await made.advance(1500);
  provider.respond(request!, '3');
  await made.advance(1500);
  assert.deepEqual(numbers(first.take()), [1, 2, 3]);
  assert.deepEqual(numbers(late.take()), [2, 3]);
});

test('Flow: a snapshot longer than the outbox does not disconnect, however the subscriber wants to overflow', async () => {
  for (const overflow of ['disconnect', 'block']) {
    const made = await DispatcherWorld.start(
      [{ code: 100, keep: { ring: 40 }, overflow: ['dropOldest', 'disconnect', 'block'] }],
      { session: { outbox: '8KiB' } },
    );
    const provider = await made.provider(100);
    const first = await made.peer();
    first.request(100, 1);
    await made.settle();
    const [request] = provider.take('REQUEST');
    for (let n = 1; n <= 40; n++) provider.respond(request!, `${n}`.padEnd(960, '.'));
    await made.settle();
    const slow = await made.peer({ receiveWindow: 4096 });
    slow.consuming = false;
    slow.request(100, 1, { overflow });
    await made.settle();
    slow.resume();
    await made.settle();
    assert.equal(slow.closed, undefined, overflow);
    assert.equal(numbers(slow.received).length, 40, overflow);
    assert.equal(slow.received.at(-1)!.flags & Flag.SNAPSHOT_END, Flag.SNAPSHOT_END, overflow);
  }
});

test('Flow: a GAP never comes before the ACCEPTED that names its line', async () => {
  const service = { overflow: ['dropOldest', 'block'] };
  const made = await DispatcherWorld.start(
    [
      { code: 100, ...service },
      { code: 101, ...service },
    ],
    { session: { outbox: '8KiB' } },
  );
  const provider = await made.provider(100, 101);
  const slow = await made.peer({ receiveWindow: 4096 });
  slow.consuming = false;
  slow.request(100, 1, { overflow: 'block' });
  await made.settle();
  const [blocking] = provider.take('REQUEST');
  for (let n = 1; n <= 20; n++) {
    provider.respond(blocking!, `${n}`.padEnd(960, '.'));
    await made.settle();
  }
  slow.request(101, 2);
  await made.settle();
  const [dropping] = provider.take('REQUEST');
  for (let n = 1; n <= 3; n++) provider.respond(dropping!, `${n}`);
  await made.settle();
  slow.resume();
  await made.settle();
  assert.deepEqual(types(slow.received.filter(({ code }) => code === 101)), ['ACCEPTED', 'GAP']);
  assert.equal(slow.take('GAP')[0]!.fields.count, 3);
});

test('groups: another overflow policy for a group that the session is in is refused', async () => {
  const service = { code: 100, returnHandlers: ['group'], overflow: ['dropOldest', 'disconnect'] };
  const made = await DispatcherWorld.start([service]);
  const provider = await made.provider(100);
  const peer = await made.peer();
  const options = { group: 'g', filter: 'key == "k"' };
  peer.request(100, 1, options);
  await made.settle();
  provider.answer(provider.take('REQUEST')[0]!);
  peer.request(100, 2, { ...options, overflow: 'disconnect' });
  peer.request(100, 3, options);
  await made.settle();
  const answers = peer.take().map(({ type, fields }) => [type, fields.request, fields.code]);
  assert.deepEqual(answers, [
    ['ACCEPTED', 1, undefined],
    ['REFUSED', 2, 'OVERFLOW_NOT_ALLOWED'],
    ['ACCEPTED', 3, undefined],
  ]);
  peer.cancel(1);
  peer.cancel(3);
  await made.settle();
  assert.equal(made.dispatcher.core.filters.size, 0);
});

test('rule 12: a dispatcher that stops leaves no stream that lingers, and no timer', async () => {
  const made = await DispatcherWorld.start([{ code: 100, linger: '1h' }]);
  const provider = await made.provider(100);
  const peer = await made.peer();
  peer.request(100, 1);
  await made.settle();
  provider.answer(provider.take('REQUEST')[0]!);
  await made.settle();
  peer.cancel(1);
  await made.settle();
  assert.equal(made.dispatcher.registry.streamCount, 1);
  const stopped = made.dispatcher.stop();
  await made.advance(1000);
  await stopped;
  assert.equal(made.dispatcher.registry.streamCount, 0);
  assert.equal(made.world.timers.size, 0);
});

test('subscriber SDK: sequence and epoch of a subscription always belong together', async () => {
  const parts = await Parts.start([{ code: 100, keep: 'last' }]);
  const provider = parts.provider();
  provider.provide(100, (subscription) => {
    for (let n = 1; n <= 5; n++) subscription.respond(n);
  });
  const subscription = parts.client().subscribe(100, {}, () => {});
  const seen: unknown[] = [];
  subscription.on('accepted', ({ snapshot }) => seen.push([snapshot, subscription.sequence]));
  await parts.advance(1000);
  assert.equal(subscription.sequence, 5);
  await parts.made.restart();
  await parts.advance(10_000);
  assert.deepEqual(seen.at(-1), [true, 0]);
  assert.equal(subscription.sequence, 5);
});

test('subscriber SDK: an abort also stops what had arrived before the end', async () => {
  const parts = await Parts.start([{ code: 100 }]);
  parts.provider().provide(100, (subscription) => {
    for (let n = 1; n <= 5; n++) subscription.respond(n);
    subscription.end();
  });
  const aborter = new AbortController();
  const seen: unknown[] = [];
  const subscription = parts.client().subscribe(100, { signal: aborter.signal }, async (message) => {
    seen.push(message.json());
    await parts.sleep(1000);
  });
  await parts.advance(1500);
  assert.equal(subscription.state, 'ended');
  aborter.abort();
  await parts.advance(10_000);
  assert.deepEqual(seen, [1, 2]);
});

test('subscriber SDK: a refusal that crosses a cancellation is no fault of the session', async () => {
  const parts = await Parts.start([{ code: 100 }]);
  const connection = parts.dial();
  const client = new Client(connection);
  await parts.advance(100);
  const subscription = client.subscribe(999);
  await subscription.unsubscribe();
  await parts.advance(100);
  assert.deepEqual({ ...connection.session!.faults }, {});
});
