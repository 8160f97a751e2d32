import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Handlers } from '@trunkline/dispatcher';
import { encodeMessage } from '@trunkline/proto';
import { DispatcherWorld, noHandlers } from '../../support/dispatcher-world.js';

const TYPE = 130;
const COST = 10;

test('while what a provider sent waits to be handled, its streams are neither probed nor asked for again', async () => {
  const onMessage = () => {
    dispatching.world.time += COST;
  };
  const handlers: Handlers = { ...noHandlers, application: new Map([[TYPE, { onMessage }]]) };
  const service = {
    code: 100,
    providers: 'dynamic',
    probeAfter: '300ms',
    probeMisses: 1,
    resendAfter: '200ms',
    resendCap: '200ms',
  };
  const dispatching = await DispatcherWorld.start([service], {}, handlers);
  const { world } = dispatching;
  const provider = await dispatching.provider(100);
  const subscriber = await dispatching.peer();
  subscriber.request(100, 1, { params: 'live' });
  await dispatching.settle();
  provider.answer(provider.take('REQUEST')[0]!);
  await dispatching.settle();
  subscriber.request(100, 2, { params: 'not answered yet' });
  await dispatching.settle();
  const [request] = provider.take('REQUEST');
  const dear = encodeMessage({ type: TYPE, code: 100 }, 'x');
  for (let count = 0; count < 100; count++) provider.session.sendData(dear, 0, dear.length, 1);
  provider.answer(request!);
  await world.advance(700);
  assert.deepEqual(provider.take(), []);
  assert.deepEqual(
    subscriber.take().map(({ type }) => type),
    ['ACCEPTED'],
    'the one that was live before, and no STATUS',
  );
  // other sessions go on meanwhile
  subscriber.request(7, 3);
  await world.advance(40);
  assert.deepEqual(
    subscriber.take().map(({ type }) => type),
    ['REFUSED'],
  );
  await world.advance(400);
  assert.deepEqual(
    subscriber.take().map(({ type }) => type),
    ['ACCEPTED'],
  );
  await world.advance(400);
  assert.ok(provider.take('PROBE').length >= 2, 'and then both are probed');
});

test('a stop handles what waits first', async () => {
  const onMessage = () => {
    dispatching.world.time += COST;
  };
  const handlers: Handlers = { ...noHandlers, application: new Map([[TYPE, { onMessage }]]) };
  const dispatching = await DispatcherWorld.start([{ code: 100, providers: 'dynamic' }], {}, handlers);
  const provider = await dispatching.provider(100);
  const subscriber = await dispatching.peer();
  subscriber.request(100, 1);
  await dispatching.settle();
  const [request] = provider.take('REQUEST');
  provider.answer(request!);
  await dispatching.settle();
  const dear = encodeMessage({ type: TYPE, code: 100 }, 'x');
  for (let count = 0; count < 100; count++) provider.session.sendData(dear, 0, dear.length, 1);
  provider.respond(request!, 'the last');
  await dispatching.settle();
  const stopped = dispatching.dispatcher.stop();
  await dispatching.world.advance(2000);
  await stopped;
  assert.deepEqual(
    subscriber.take('RESPONSE').map(({ body }) => body),
    ['the last'],
  );
  assert.equal(dispatching.dispatcher.peers.size, 0);
});
