import assert from 'node:assert/strict';
import { test } from 'node:test';
import { payload, SessionHost, TrunklineError, Type } from '@trunkline/proto';
import { configure, DispatcherWorld, noHandlers, type RawPeer } from '../../support/dispatcher-world.js';

const service = { code: 100, name: 'test', providers: 'dynamic' };
const wide = { code: '5000-5999', name: 'wide', providers: 'dynamic' };

function offer(peer: RawPeer, codes: number[], ranges: number[] = [], type: number = Type.OFFER): void {
  peer.session.send({ type }, payload.offer.encode({ codes, ranges }));
}

const numbers = (count: number, from = 1) => Array.from({ length: count }, (_, index) => from + index);

test('an offer beyond the bound is refused as a whole, at no great cost', async () => {
  const made = await DispatcherWorld.start([service]);
  const greedy = await made.peer();
  const subscriber = await made.peer();
  subscriber.request(100, 1);
  offer(greedy, numbers(100_001));
  offer(greedy, [], numbers(200_000));
  offer(greedy, [], numbers(500_000, 2 ** 28));
  await made.settle();
  assert.deepEqual(
    greedy.take('REFUSED').map(({ fields }) => [fields.request, fields.code]),
    Array(3).fill([0, 'LIMIT_EXCEEDED']),
  );
  assert.deepEqual(greedy.take('REQUEST'), []);
  offer(greedy, [100, 100], [1, 1, 1, 1]);
  await made.settle();
  assert.equal(greedy.take('REQUEST').length, 1, 'one that is within the bound counts');
  assert.equal(greedy.closed, undefined);
});

test('many offers and many waiting streams: each is looked at when its code is offered', async () => {
  const made = await DispatcherWorld.start([wide]);
  const subscriber = await made.peer();
  for (let code = 5000; code < 6000; code++)
    for (let n = 0; n < 5; n++) subscriber.request(code, code * 5 + n, { params: n });
  await made.settle();
  const provider = await made.peer();
  for (let code = 5000; code < 6000; code++) provider.offer(code);
  await made.settle();
  const first = provider.take('REQUEST');
  assert.ok(first.length > 0);
  let asked = 0;
  for (let batch = first; batch.length > 0; batch = provider.take('REQUEST')) {
    asked += batch.length;
    for (const request of batch) provider.answer(request);
    await made.settle();
  }
  assert.equal(asked, 5000);
});

test('a withdrawn range takes its streams, and only those; what was never offered is ignored', async () => {
  const made = await DispatcherWorld.start([wide, service]);
  const [provider, other] = [await made.peer(), await made.peer()];
  const subscriber = await made.peer();
  offer(provider, [100], [5000, 5499, 5500, 5999]);
  offer(other, [], [5000, 5999]);
  for (const [request, code] of [100, 5001, 5600].entries()) subscriber.request(code, request + 1);
  await made.settle();
  for (const request of provider.take('REQUEST')) provider.answer(request);
  await made.settle();
  offer(provider, [7, 5600], [1, 99, 5500, 5998], Type.WITHDRAW);
  offer(subscriber, [100], [], Type.WITHDRAW);
  await made.settle();
  assert.deepEqual(other.take('REQUEST'), []);
  offer(provider, [], [5500, 5999], Type.WITHDRAW);
  await made.settle();
  assert.deepEqual(
    other.take('REQUEST').map(({ code }) => code),
    [5600],
  );
  provider.session.close();
  await made.settle();
  assert.deepEqual(
    other.take('REQUEST').map(({ code }) => code),
    [5001],
  );
  const { offers } = made.dispatcher.registry;
  assert.deepEqual(offers.of(5600).length, 1);
  assert.deepEqual(offers.of(100), []);
});

test('what a provider at a static address offers does not make it serve more than the table says', async () => {
  const address = 'tcp://127.0.0.1:9000';
  const made = await DispatcherWorld.start([service, { code: 200, name: 'static', providers: [address] }]);
  const asked: number[] = [];
  const host = new SessionHost({
    context: made.world.context(),
    maxSessions: 1,
    events: {
      onOpen: (session) => session.send({ type: Type.OFFER }, payload.offer.encode({ codes: [100, 200] })),
      onControl: (_session, type, batch, at) => type === Type.REQUEST && asked.push(batch[at + 8]!),
      onData: () => {},
      onCredit: () => {},
      onClosed: () => {},
    },
  });
  await made.network.listen(address, host);
  const subscriber = await made.peer();
  subscriber.request(100, 1);
  subscriber.request(200, 2);
  await made.settle();
  assert.deepEqual(asked, [200]);
});

test('a provider at a static address that will not have us is left alone until the next reload', async () => {
  const address = 'tcp://127.0.0.1:9000';
  const services = [{ code: 200, name: 'static', providers: [address] }];
  const made = await DispatcherWorld.start(services);
  let refuses = true;
  let hellos = 0;
  const asked: number[] = [];
  const host = new SessionHost({
    context: made.world.context(),
    maxSessions: 1,
    authenticate: () => {
      hellos++;
      return refuses ? new TrunklineError('UNAUTHENTICATED') : undefined;
    },
    events: {
      onOpen: () => {},
      onControl: (_session, type) => asked.push(type),
      onData: () => {},
      onCredit: () => {},
      onClosed: () => {},
    },
  });
  await made.network.listen(address, host);
  const subscriber = await made.peer();
  subscriber.request(200, 1);
  await made.advance(60_000);
  assert.equal(hellos, 1);
  refuses = false;
  made.dispatcher.reload(configure(services), noHandlers);
  await made.settle();
  assert.equal(hellos, 2);
  assert.deepEqual(asked, [Type.REQUEST]);
  made.dispatcher.reload(configure(services), noHandlers);
  await made.settle();
  assert.equal(hellos, 2, 'one that is connected is not dialled again');
});
