import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Flag, payload, Type } from '@trunkline/proto';
import { DispatcherWorld, nothing } from '../../support/dispatcher-world.js';

const service = (code: number | string, more: object = {}) => ({
  code,
  name: `s${code}`,
  providers: 'dynamic',
  ...more,
});

test('rule 1: equal requests share one upstream subscription, different ones do not', async () => {
  const world = await DispatcherWorld.start([service(100)]);
  const provider = await world.provider(100);
  const [one, two] = [await world.peer(), await world.peer()];
  one.request(100, 1, { params: { a: 1, b: [2] } });
  two.request(100, 1, { params: { b: [2], a: 1 } });
  two.request(100, 2, { params: { a: '1', b: [2] } });
  await world.settle();
  const requests = provider.take('REQUEST');
  assert.equal(requests.length, 2);
  for (const request of requests) provider.answer(request);
  await world.settle();
  assert.equal(one.take('ACCEPTED').length, 1);
  assert.deepEqual(
    two.take('ACCEPTED').map(({ fields }) => fields.request),
    [1, 2],
  );
  provider.respond(requests[0]!, 'x');
  await world.settle();
  for (const peer of [one, two])
    assert.deepEqual(
      peer.take('RESPONSE').map(({ body, sequence }) => [body, sequence]),
      [['x', 1]],
    );
  one.cancel(1);
  two.cancel(1);
  two.cancel(2);
  await world.settle();
  assert.equal(provider.take('CANCEL').length, 2);
  assert.deepEqual(world.leftovers(), nothing);
});

test('rule 2: a refusal answers everyone and leaves nothing; a later request goes upstream again', async () => {
  const world = await DispatcherWorld.start([service(100)]);
  const provider = await world.provider(100);
  const [one, two, three] = [await world.peer(), await world.peer(), await world.peer()];
  one.request(100, 7);
  await world.settle();
  two.request(100, 8);
  await world.settle();
  const [request] = provider.take('REQUEST');
  provider.refuse(request!, 'FORBIDDEN', 'not you');
  await world.settle();
  assert.deepEqual(
    one.take('REFUSED').map(({ fields }) => [fields.request, fields.code]),
    [[7, 'FORBIDDEN']],
  );
  assert.deepEqual(
    two.take('REFUSED').map(({ fields }) => [fields.request, fields.message]),
    [[8, 'not you']],
  );
  assert.deepEqual(world.leftovers(), nothing);
  three.request(100, 1);
  await world.settle();
  assert.equal(provider.take('REQUEST').length, 1);
});

test('rule 3: an unanswered request is sent again with a growing wait, same line and generation', async () => {
  const world = await DispatcherWorld.start([service(100, { resendAfter: '300ms', resendCap: '1s' })]);
  const provider = await world.provider(100);
  const subscriber = await world.peer();
  subscriber.request(100, 1);
  await world.advance(299);
  assert.equal(provider.take('REQUEST').length, 1);
  await world.advance(62);
  const again = provider.take('REQUEST');
  assert.equal(again.length, 1);
  await world.advance(590);
  assert.equal(provider.take('REQUEST').length, 0);
  await world.advance(140);
  const third = provider.take('REQUEST');
  assert.deepEqual([third[0]!.line, third[0]!.generation], [again[0]!.line, again[0]!.generation]);
  provider.answer(third[0]!);
  await world.advance(5000);
  assert.equal(provider.take('REQUEST').length, 0);
  assert.equal(subscriber.take('ACCEPTED').length, 1);
});

test('rule 4: a provider has at most requestWindow unanswered requests, also while they are sent again', async () => {
  const world = await DispatcherWorld.start([service(100, { requestWindow: 2, resendAfter: '1s', resendCap: '1s' })]);
  const provider = await world.provider(100);
  const subscriber = await world.peer();
  for (let id = 1; id <= 5; id++) subscriber.request(100, id, { params: id });
  await world.settle();
  const first = provider.take('REQUEST');
  assert.equal(first.length, 2);
  await world.advance(2401);
  const again = provider.take('REQUEST');
  assert.deepEqual(new Set(again.map(({ line }) => line)), new Set(first.map(({ line }) => line)));
  provider.answer(first[0]!);
  await world.settle();
  assert.equal(provider.take('REQUEST').length, 1);
  subscriber.cancel(2);
  await world.settle();
  assert.deepEqual(
    provider.take().map(({ type }) => type),
    ['CANCEL', 'REQUEST'],
    'a request that is withdrawn gives its place to the next',
  );
});

test('a request that is larger than its provider takes is refused', async () => {
  const world = await DispatcherWorld.start([service(100)]);
  const provider = await world.peer({ maxMessage: 1000 });
  provider.offer(100);
  const subscriber = await world.peer();
  subscriber.request(100, 1, { params: 'x'.repeat(1000) });
  subscriber.request(100, 2, { params: 'x'.repeat(900) });
  await world.advance(1);
  assert.deepEqual(
    subscriber.take('REFUSED').map(({ fields }) => [fields.request, fields.code]),
    [[1, 'MESSAGE_TOO_LARGE']],
  );
  assert.equal(provider.take('REQUEST').length, 1);
});

test('rule 5: a silent stream is probed, becomes stale after the misses, is probed on, and lives again', async () => {
  const world = await DispatcherWorld.start([service(100, { probeAfter: '1s', probeMisses: 2 })]);
  const provider = await world.provider(100);
  const subscriber = await world.peer();
  subscriber.request(100, 1, { params: { x: 1 } });
  await world.settle();
  const [request] = provider.take('REQUEST');
  provider.answer(request!);
  await world.settle();
  assert.equal(subscriber.take('ACCEPTED').length, 1);
  await world.advance(1001);
  const [probe] = provider.take('PROBE');
  assert.deepEqual([probe!.line, probe!.generation], [request!.line, request!.generation]);
  assert.deepEqual(new TextDecoder().decode(probe!.fields.params as Uint8Array), '{"x":1}');
  provider.answer(probe!, Type.PROBE_REPLY);
  await world.advance(1900);
  assert.equal(provider.take('PROBE').length, 1);
  assert.equal(subscriber.take('STATUS').length, 0);
  await world.advance(1200);
  assert.deepEqual(
    subscriber.take('STATUS').map(({ fields }) => fields.state),
    ['stale'],
  );
  await world.advance(3000);
  assert.ok(provider.take('PROBE').length >= 3, 'probing never stops while there are subscribers');
  provider.respond(request!, 'back');
  await world.settle();
  assert.deepEqual(
    subscriber.take().map(({ type, fields, body }) => `${type} ${fields.state ?? body}`),
    ['STATUS live', 'RESPONSE back'],
  );
});

test('rules 6 and 7: a provider that restarts gets its streams again, in a new generation with a marked boundary', async () => {
  const world = await DispatcherWorld.start([service(100)]);
  const provider = await world.provider(100);
  const subscriber = await world.peer();
  subscriber.request(100, 1);
  await world.settle();
  const [first] = provider.take('REQUEST');
  provider.respond(first!, 'old');
  await world.settle();
  provider.session.close();
  await world.settle();
  const next = await world.provider(100);
  const [second] = next.take('REQUEST');
  assert.ok(second!.generation > first!.generation);
  next.respond(second!, 'new');
  await world.settle();
  assert.deepEqual(
    subscriber.take().map(({ type, fields, body, sequence }) => [type, fields.state ?? body, sequence]),
    [
      ['ACCEPTED', undefined, 0],
      ['RESPONSE', 'old', 1],
      ['STATUS', 'stale', 1],
      ['STATUS', 'live', 1],
      ['RESPONSE', 'new', 2],
    ].map(([type, what, sequence]) => [type, what ?? '', sequence]),
  );
});

test('rule 7: a response of an older generation is dropped and counted', async () => {
  const world = await DispatcherWorld.start([service(100)]);
  const provider = await world.provider(100);
  const subscriber = await world.peer();
  subscriber.request(100, 1);
  await world.settle();
  const [request] = provider.take('REQUEST');
  provider.answer(request!);
  provider.respond({ ...request!, generation: request!.generation - 1 }, 'old');
  await world.settle();
  assert.equal(subscriber.take('RESPONSE').length, 0);
  assert.equal(world.dispatcher.core.counters.outdated, 1);
});

test('rule 8: linger keeps the upstream for a new request; after it CANCEL goes upstream once', async () => {
  const world = await DispatcherWorld.start([service(100, { linger: '1s' })]);
  const provider = await world.provider(100);
  const subscriber = await world.peer();
  subscriber.request(100, 1);
  await world.settle();
  const [request] = provider.take('REQUEST');
  provider.answer(request!);
  await world.settle();
  subscriber.cancel(1);
  await world.advance(900);
  subscriber.request(100, 2);
  await world.advance(2000);
  assert.equal(provider.take().length, 0);
  subscriber.cancel(2);
  await world.advance(999);
  assert.equal(provider.take('CANCEL').length, 0);
  await world.advance(2);
  const cancels = provider.take('CANCEL');
  assert.deepEqual(
    cancels.map(({ line, generation }) => [line, generation]),
    [[request!.line, request!.generation]],
  );
  assert.deepEqual(world.leftovers(), nothing);
});

test('rule 8: a request while CANCEL is in flight gets a new generation', async () => {
  const world = await DispatcherWorld.start([service(100)]);
  const provider = await world.provider(100);
  const subscriber = await world.peer();
  subscriber.request(100, 1);
  await world.settle();
  const [first] = provider.take('REQUEST');
  provider.answer(first!);
  await world.settle();
  subscriber.cancel(1);
  subscriber.request(100, 2);
  await world.settle();
  const [cancel, second] = provider.take();
  assert.deepEqual([cancel!.type, second!.type], ['CANCEL', 'REQUEST']);
  assert.ok(second!.generation > first!.generation);
  provider.respond(first!, 'late');
  provider.respond(second!, 'right');
  await world.settle();
  assert.deepEqual(
    subscriber.take('RESPONSE').map(({ body }) => body),
    ['right'],
  );
});

for (const [keep, expected] of [
  ['last', ['c3']],
  ['lastPerKey', ['b2', 'c3']],
  [{ ring: 2 }, ['b2', 'c3']],
  [{ ring: 5 }, ['a1', 'b2', 'c3']],
] as const) {
  test(`rule 9: a late joiner gets what ${JSON.stringify(keep)} keeps, then SNAPSHOT_END, then live`, async () => {
    const world = await DispatcherWorld.start([service(100, { keep })]);
    const provider = await world.provider(100);
    const [early, late] = [await world.peer(), await world.peer()];
    early.request(100, 1);
    await world.settle();
    const [request] = provider.take('REQUEST');
    for (const [body, key] of [
      ['a1', 'k'],
      ['b2', 'k'],
      ['c3', 'l'],
    ])
      provider.respond(request!, body!, { key: key! });
    await world.settle();
    late.request(100, 1);
    await world.settle();
    provider.respond(request!, 'd4', { key: 'k' });
    await world.settle();
    const [accepted, ...rest] = late.take();
    assert.equal(accepted!.fields.snapshot, true);
    assert.deepEqual(
      rest.map(({ body, flags }) => [body, flags]),
      [...expected.map((body) => [body, Flag.SNAPSHOT]), ['', Flag.SNAPSHOT | Flag.SNAPSHOT_END], ['d4', 0]],
    );
    assert.deepEqual(
      early
        .take('RESPONSE')
        .map(({ body }) => body)
        .filter((body) => body !== ''),
      ['a1', 'b2', 'c3', 'd4'],
    );
  });
}

test('rule 9: resuming from a ring joins without a hole, tells what is gone, and never joins two histories', async () => {
  const world = await DispatcherWorld.start([service(100, { keep: { ring: 3 } })]);
  const provider = await world.provider(100);
  const peer = await world.peer();
  peer.request(100, 1);
  await world.settle();
  const [request] = provider.take('REQUEST');
  for (const body of ['1', '2', '3', '4', '5']) provider.respond(request!, body);
  await world.settle();
  const epoch = peer.take('ACCEPTED')[0]!.fields.epoch as Uint8Array;
  const from = payload.StartFrom.AFTER;
  const resume = async (id: number, sequence: number, of: Uint8Array) => {
    const other = await world.peer();
    other.request(100, id, { start: { from, sequence, epoch: of } });
    await world.settle();
    const [accepted, ...rest] = other.take();
    return {
      resumed: accepted!.fields.resumed,
      rest: rest.map(({ type, body, fields }) => (type === 'GAP' ? fields : body)),
    };
  };
  assert.deepEqual(await resume(1, 3, epoch), { resumed: true, rest: ['4', '5', ''] });
  assert.deepEqual(await resume(2, 5, epoch), { resumed: true, rest: [''] });
  assert.deepEqual(await resume(3, 1, epoch), {
    resumed: false,
    rest: [{ count: 1, first: 2, last: 2, reason: 'history' }, '3', '4', '5', ''],
  });
  const other = epoch.slice();
  other[0]! ^= 1;
  assert.deepEqual(await resume(4, 4, other), { resumed: false, rest: ['3', '4', '5', ''] });
});

test('rule 10: a FINAL response and END complete the stream for everyone', async () => {
  const world = await DispatcherWorld.start([service(100)]);
  const provider = await world.provider(100);
  const [one, two] = [await world.peer(), await world.peer()];
  one.request(100, 1);
  two.request(100, 2, { filter: 'key == "other"' });
  await world.settle();
  const [request] = provider.take('REQUEST');
  provider.respond(request!, 'the answer', { final: true });
  await world.settle();
  assert.deepEqual(
    one.take().map(({ type }) => type),
    ['ACCEPTED', 'RESPONSE', 'END'],
  );
  assert.deepEqual(
    two.take().map(({ type, fields }) => `${type} ${fields.code ?? ''}`),
    ['ACCEPTED ', 'END COMPLETED'],
  );
  assert.deepEqual(world.leftovers(), nothing);
  one.request(100, 3);
  await world.settle();
  const [next] = provider.take('REQUEST');
  provider.end(next!, { code: 'EXITED', exit: 3, message: 'gone' });
  await world.settle();
  const [accepted, end] = one.take();
  assert.equal(accepted!.type, 'ACCEPTED');
  assert.deepEqual({ ...end!.fields }, { code: 'EXITED', message: 'gone', exit: 3 });
  assert.equal(provider.take('CANCEL').length, 0, 'what the provider ended itself is not cancelled');
});

test('rule 12: a session that ends in any way leaves nothing', async () => {
  for (const how of ['bye', 'cut', 'silence'] as const) {
    const world = await DispatcherWorld.start([service(100, { keep: 'last' })], { session: { heartbeat: '1s' } });
    const provider = await world.provider(100);
    const subscriber = await world.peer({ heartbeat: 1000 });
    for (let id = 1; id <= 50; id++)
      subscriber.request(100, id, { params: id % 25, filter: id % 2 ? 'key == "a"' : '' });
    await world.settle();
    for (const request of provider.take('REQUEST')) provider.respond(request, 'x', { key: 'a' });
    await world.settle();
    if (how === 'bye') subscriber.session.close();
    else if (how === 'cut') subscriber.link.cut();
    else subscriber.link.deaf = true;
    await world.advance(how === 'silence' ? 4000 : 10);
    assert.deepEqual(world.leftovers(), nothing, how);
    assert.equal(provider.take('CANCEL').length, 25);
    assert.equal(world.dispatcher.peers.size, 1);
  }
});

test('rule 14: two requests of one session with different options each get what is theirs', async () => {
  const world = await DispatcherWorld.start([service(100)]);
  const provider = await world.provider(100);
  const peer = await world.peer();
  peer.request(100, 1);
  peer.request(100, 2, { filter: 'key == "b"' });
  peer.request(100, 3, { returnHandler: 'group', group: 'g' });
  peer.request(100, 4, { filter: 'key == "b"' });
  await world.settle();
  const requests = provider.take('REQUEST');
  assert.equal(requests.length, 1);
  for (const key of ['a', 'b']) provider.respond(requests[0]!, key, { key });
  await world.settle();
  const lines = new Map(peer.take('ACCEPTED').map(({ fields, line }) => [fields.request, line]));
  assert.equal(new Set(lines.values()).size, 3, 'requests 2 and 4 share a lane');
  assert.equal(lines.get(2), lines.get(4));
  const got = peer.take('RESPONSE');
  const bodies = (request: number) => got.filter(({ line }) => line === lines.get(request)).map(({ body }) => body);
  assert.deepEqual(bodies(1), ['a', 'b']);
  assert.deepEqual(bodies(2), ['b']);
  assert.deepEqual(bodies(3), ['a', 'b']);
});
