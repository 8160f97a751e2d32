import assert from 'node:assert/strict';
import { test } from 'node:test';
import { payload, type Type } from '@trunkline/proto';
import { DispatcherWorld, noHandlers, nothing, type RawPeer, type Received } from '../../support/dispatcher-world.js';

async function world(sendHandler: string, providers: number, handlers = noHandlers) {
  const modules = {
    sendHandlers: Object.fromEntries([...handlers.send.keys()].map((name) => [name, { path: 'x.mjs' }])),
  };
  const made = await DispatcherWorld.start(
    [{ code: 100, providers: 'dynamic', sendHandler, requestWindow: 1000 }],
    { modules },
    handlers,
  );
  const all: RawPeer[] = [];
  for (let index = 0; index < providers; index++) all.push(await made.provider(100));
  return { made, all, subscriber: await made.peer() };
}

test('failover: the first that is up; when it goes, the next; streams that have one stay', async () => {
  const { made, all, subscriber } = await world('failover', 2);
  for (let id = 1; id <= 10; id++) subscriber.request(100, id, { params: id });
  await made.settle();
  const first = all[0]!.take('REQUEST');
  assert.equal(first.length, 10);
  for (const request of first) all[0]!.answer(request);
  await made.settle();
  all[0]!.session.close();
  await made.settle();
  assert.equal(all[1]!.take('REQUEST').length, 10);
  const back = await made.provider(100);
  assert.equal(back.take('REQUEST').length, 0);
  subscriber.request(100, 11, { params: 11 });
  await made.settle();
  assert.equal(all[1]!.take('REQUEST').length, 1);
});

test('failover: a provider that is silent to probes loses its streams to one that is up', async () => {
  const { made, all, subscriber } = await world('failover', 2);
  subscriber.request(100, 1);
  await made.settle();
  const [request] = all[0]!.take('REQUEST');
  all[0]!.answer(request!);
  await made.advance(60_000);
  const [moved] = all[1]!.take('REQUEST');
  assert.ok(moved!.generation > request!.generation);
  assert.equal(all[0]!.take('CANCEL').length, 1);
  all[1]!.respond(moved!, 'x');
  await made.settle();
  assert.deepEqual(
    subscriber.take().map(({ type, fields }) => `${type} ${fields.state ?? ''}`),
    ['ACCEPTED ', 'STATUS stale', 'STATUS live', 'RESPONSE '],
  );
});

test('roundRobin: requests take turns; hash: the same params go to the same provider, and only its share moves', async () => {
  const turns = await world('roundRobin', 3);
  for (let id = 1; id <= 9; id++) turns.subscriber.request(100, id, { params: id });
  await turns.made.settle();
  assert.deepEqual(
    turns.all.map((provider) => provider.take('REQUEST').length),
    [3, 3, 3],
  );

  const { made, all, subscriber } = await world('hash', 3);
  for (let id = 1; id <= 300; id++) subscriber.request(100, id, { params: id });
  await made.settle();
  const served = async (provider: RawPeer) => {
    const taken: Received[] = [];
    for (let some = provider.take('REQUEST'); some.length > 0; some = provider.take('REQUEST')) {
      for (const request of some) provider.answer(request);
      taken.push(...some);
      await made.settle();
    }
    return taken;
  };
  const shares = [await served(all[0]!), await served(all[1]!), await served(all[2]!)];
  assert.ok(
    shares.every(({ length }) => length > 60),
    shares.map(({ length }) => length).join(),
  );
  all[1]!.session.close();
  await made.settle();
  const moved = [await served(all[0]!), await served(all[2]!)];
  assert.equal(moved.flat().length, shares[1]!.length);
});

test('all: every provider, also one that comes later; responses interleave; it ends with the last', async () => {
  const { made, all, subscriber } = await world('all', 2);
  subscriber.request(100, 1);
  await made.settle();
  const requests = all.map((provider) => provider.take('REQUEST')[0]!);
  assert.notEqual(requests[0]!.generation, requests[1]!.generation);
  all[0]!.respond(requests[0]!, 'a');
  all[1]!.respond(requests[1]!, 'b');
  await made.settle();
  assert.deepEqual(
    subscriber.take('RESPONSE').map(({ body, sequence }) => [body, sequence]),
    [
      ['a', 1],
      ['b', 2],
    ],
  );
  const third = await made.provider(100);
  const [late] = third.take('REQUEST');
  third.answer(late!);
  all[0]!.end(requests[0]!);
  all[1]!.session.close();
  await made.settle();
  assert.equal(subscriber.take('END').length, 0);
  third.end(late!);
  await made.settle();
  assert.equal(subscriber.take('END').length, 1);
  assert.deepEqual(made.leftovers(), nothing);
});

test('a refusal of one of several providers does not refuse the stream', async () => {
  const { made, all, subscriber } = await world('all', 2);
  subscriber.request(100, 1);
  await made.settle();
  const requests = all.map((provider) => provider.take('REQUEST')[0]!);
  all[0]!.refuse(requests[0]!);
  all[1]!.answer(requests[1]!);
  await made.settle();
  assert.deepEqual(
    subscriber.take().map(({ type }) => type),
    ['ACCEPTED'],
  );
});

test('a custom send handler that throws or answers nonsense costs nothing but its say', async () => {
  let answer: () => never = () => {
    throw new Error('broken');
  };
  const send = new Map([['odd', { choose: () => answer() }]]);
  const { made, all, subscriber } = await world('odd', 2, { ...noHandlers, send });
  subscriber.request(100, 1, { params: 1 });
  await made.settle();
  answer = () => 'nonsense' as never;
  subscriber.request(100, 2, { params: 2 });
  await made.settle();
  assert.equal(all[0]!.take('REQUEST').length, 2);
  assert.equal(made.dispatcher.core.counters.handlerErrors, 1);
});

test('NOT_PROVIDED keeps the request pending and asks again; an OFFER asks at once (F2)', async () => {
  const made = await DispatcherWorld.start([{ code: 100, providers: 'dynamic', resendAfter: '300ms' }]);
  const provider = await made.provider(100);
  const subscriber = await made.peer();
  subscriber.request(100, 1);
  await made.settle();
  const [first] = provider.take('REQUEST');
  const refuse = (request: typeof first) =>
    provider.answer(
      request!,
      33 satisfies typeof Type.REFUSED,
      payload.refused.encode({ code: 'NOT_PROVIDED', retryable: true }),
    );
  refuse(first);
  await made.advance(700);
  const [second] = provider.take('REQUEST');
  refuse(second);
  await made.settle();
  provider.offer(100);
  await made.settle();
  const [third] = provider.take('REQUEST');
  provider.answer(third!);
  await made.advance(5000);
  assert.equal(provider.take('REQUEST').length, 0);
  assert.deepEqual(
    subscriber.take().map(({ type }) => type),
    ['ACCEPTED'],
  );
});

test('a provider that withdraws a code loses its streams; a later offer gets them', async () => {
  const { made, all, subscriber } = await world('failover', 1);
  subscriber.request(100, 1);
  await made.settle();
  const [request] = all[0]!.take('REQUEST');
  all[0]!.answer(request!);
  all[0]!.withdraw(100);
  await made.settle();
  assert.deepEqual(
    subscriber.take().map(({ type, fields }) => `${type} ${fields.state ?? ''}`),
    ['ACCEPTED ', 'STATUS stale'],
  );
  all[0]!.offer(100);
  await made.settle();
  assert.equal(all[0]!.take('REQUEST').length, 1);
});

test('a provider probing by itself is answered, marked alive and handed to onProbe; a line nobody has is cancelled', async () => {
  const seen: object[] = [];
  const probe = new Map([['watch', { onProbe: (event: object) => void seen.push(event) }]]);
  const made = await DispatcherWorld.start(
    [{ code: 100, providers: 'dynamic', onProbe: 'watch' }],
    { modules: { onProbe: { watch: { path: 'x.mjs' } } } },
    { ...noHandlers, probe },
  );
  const provider = await made.provider(100);
  const subscriber = await made.peer();
  subscriber.request(100, 1);
  await made.settle();
  const [request] = provider.take('REQUEST');
  provider.answer(request!, 4 satisfies typeof Type.PROBE);
  provider.answer({ ...request!, line: 12345 }, 4 satisfies typeof Type.PROBE);
  await made.settle();
  assert.deepEqual(
    provider.take().map(({ type, line }) => [type, line]),
    [
      ['PROBE_REPLY', request!.line],
      ['CANCEL', 12345],
    ],
  );
  assert.equal(subscriber.take('ACCEPTED').length, 1);
  assert.deepEqual(
    seen.map((event) => ({ ...event })),
    [{ code: 100, provider: 'process-1', params: '', reply: false }],
  );
});
