import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Handlers } from '@trunkline/dispatcher';
import { encodeMessage } from '@trunkline/proto';
import { DispatcherWorld, noHandlers } from '../../support/dispatcher-world.js';

const service = { code: 100, name: 'test', providers: 'dynamic' };

test('requests that were withdrawn do not pile up behind a provider that answers nothing', async () => {
  const made = await DispatcherWorld.start([{ ...service, requestWindow: 1 }]);
  await made.provider(100);
  const subscriber = await made.peer();
  for (let request = 1; request <= 2000; request++) {
    subscriber.request(100, request, { params: request });
    if (request > 1) subscriber.cancel(request);
  }
  await made.settle();
  const [provider] = [...made.dispatcher.peers.values()].flatMap((peer) => peer.provider ?? []);
  assert.ok(provider!.pacer.size < 200, `${provider!.pacer.size} wait`);
  assert.equal(provider!.upstreams.size, 1);
});

test('a stop in the middle of another one is the same; a reload after it is refused', async () => {
  const made = await DispatcherWorld.start([service]);
  const stops = [made.dispatcher.stop(), made.dispatcher.stop()];
  assert.equal(stops[0], stops[1]);
  const static1 = { code: 200, name: 'static', providers: ['tcp://127.0.0.1:9'] };
  const next = await DispatcherWorld.start([static1], { listen: ['tcp://127.0.0.1:7401'] });
  assert.throws(() => made.dispatcher.reload(next.configuration, noHandlers), { code: 'CLOSED' });
  await made.advance(10_000);
  await Promise.all(stops);
  assert.equal(made.network.links('tcp://127.0.0.1:9').length, 0);
  assert.equal(made.world.timers.size, 0);
});

test('a handler whose promise rejects is counted like one that throws, and ends nothing', async () => {
  const onMessage = async () => {
    throw new Error('later');
  };
  const handlers: Handlers = { ...noHandlers, application: new Map([[130, { onMessage }]]) };
  const made = await DispatcherWorld.start([service], {}, handlers);
  const peer = await made.peer();
  for (let count = 0; count < 3; count++) {
    const message = encodeMessage({ type: 130, code: 100 }, 'x');
    peer.session.sendData(message, 0, message.length, 1);
  }
  await made.settle();
  assert.equal(made.dispatcher.core.counters.handlerErrors, 3);
  assert.equal(peer.closed, undefined);
});

test('lines are taken and given back in order, at the same cost however many are free', async () => {
  const { lines } = (await DispatcherWorld.start([service])).dispatcher.core;
  const item = {} as never;
  const taken = Array.from({ length: 300_000 }, () => lines.allocate(item));
  for (const line of taken) lines.release(line);
  assert.equal(lines.size, 0);
  const again = Array.from({ length: 300_000 }, () => lines.allocate(item));
  assert.equal(new Set([...taken, ...again]).size, 600_000, 'no line has the id of an earlier one');
  for (const line of taken) assert.equal(lines.get(line), undefined);
});
