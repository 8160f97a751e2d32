import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApplicationHandler, Handlers } from '@trunkline/dispatcher';
import { encodeMessage, readU32, Type } from '@trunkline/proto';
import { Provider } from '@trunkline/publisher/core';
import { DispatcherWorld, noHandlers, nothing, type RawPeer } from '../../support/dispatcher-world.js';

const service = { code: 100, name: 'test', providers: 'dynamic' };
const TYPE = 130;

function sendApplication(peer: RawPeer, body: string): void {
  const message = encodeMessage({ type: TYPE, code: 100 }, body);
  const at = peer.session.reserveData(message.length);
  assert.ok(at >= 0);
  peer.session.target.set(message, at);
}

/** A handler that does the given thing with each message and notes what came of it. */
function world(act: ApplicationHandler['onMessage']): Promise<DispatcherWorld> {
  const handlers: Handlers = { ...noHandlers, application: new Map([[TYPE, { onMessage: act }]]) };
  return DispatcherWorld.start([service], {}, handlers);
}

test('application messages are forwarded while the provider has room, and left out, countably, while it has not', async () => {
  const taken: number[] = [];
  const made = await world((_message, context) => void taken.push(context.forward()));
  const provider = await made.peer({ receiveWindow: 1024 });
  provider.offer(100);
  const sender = await made.peer();
  await made.settle();
  provider.consuming = false;
  const body = 'x'.repeat(300);
  for (let count = 0; count < 10; count++) sendApplication(sender, body);
  await made.settle();
  const { length } = encodeMessage({ type: TYPE }, body);
  const room = Math.ceil(1024 / length);
  assert.deepEqual(taken, [...Array(room).fill(1), ...Array(10 - room).fill(0)]);
  assert.equal(provider.take(`APPLICATION(${TYPE})`).length, room);
  provider.resume();
  await made.settle();
  sendApplication(sender, body);
  await made.settle();
  assert.equal(taken.at(-1), 1);
});

test('an answer to an application message that its sender has no room for, or cannot take, is not sent', async () => {
  const taken: boolean[] = [];
  let size = 100;
  const made = await world((_message, context) => void taken.push(context.reply(TYPE, new Uint8Array(size))));
  const sender = await made.peer({ receiveWindow: 200, maxMessage: 1000 });
  sender.consuming = false;
  for (let count = 0; count < 4; count++) sendApplication(sender, 'x');
  await made.settle();
  assert.deepEqual(taken, [true, true, false, false]);
  sender.resume();
  size = 2000;
  await made.settle();
  sendApplication(sender, 'x');
  await made.settle();
  assert.equal(taken.at(-1), false);
  assert.equal(sender.closed, undefined);
});

test('an answer of code 0 that the session has no credit for, or that is too large for it, is refused with its code', async () => {
  const made = await DispatcherWorld.start([service]);
  const poor = await made.peer({ receiveWindow: 100 });
  poor.consuming = false;
  for (let request = 1; request <= 3; request++) poor.request(0, request, { params: { show: 'status' } });
  await made.settle();
  assert.equal(poor.take('RESPONSE').length, 1);
  assert.deepEqual(
    poor.take('REFUSED').map(({ fields }) => [fields.request, fields.code, fields.retryable]),
    [
      [2, 'LIMIT_EXCEEDED', true],
      [3, 'LIMIT_EXCEEDED', true],
    ],
  );
  const small = await made.peer({ maxMessage: 150 });
  small.request(0, 1, { params: { show: 'status' } });
  await made.settle();
  assert.equal(small.take('RESPONSE').length, 0);
  assert.equal(small.take('REFUSED')[0]!.fields.code, 'MESSAGE_TOO_LARGE');
  assert.deepEqual(made.leftovers(), nothing);
});

test('the code of a provider’s END that nobody knows reads as a failure, no code as a good end', async () => {
  for (const [sent, told] of [
    ['SOMETHING_NEW', 'REFUSED'],
    ['', 'COMPLETED'],
    ['EXITED', 'EXITED'],
  ] as const) {
    const made = await DispatcherWorld.start([service]);
    const provider = await made.provider(100);
    const subscriber = await made.peer();
    subscriber.request(100, 1);
    await made.settle();
    const request = provider.take('REQUEST')[0]!;
    provider.answer(request);
    provider.end(request, { code: sent });
    await made.settle();
    assert.deepEqual(
      subscriber.take('END').map(({ fields }) => fields.code),
      [told],
    );
    assert.deepEqual(made.leftovers(), nothing);
  }
});

test('a snapshot, its end included, is spent from the credit that its receiver gives back', async () => {
  const made = await DispatcherWorld.start([{ ...service, keep: 'last' }]);
  const provider = await made.provider(100);
  const subscriber = await made.peer();
  subscriber.request(100, 1);
  await made.settle();
  provider.answer(provider.take('REQUEST')[0]!);
  await made.settle();
  const [peer] = [...made.dispatcher.peers.values()].filter(({ provider: side }) => side === undefined);
  const before = peer!.session.credit;
  subscriber.consuming = false;
  subscriber.request(100, 2);
  await made.settle();
  const [end] = subscriber.take('RESPONSE');
  assert.ok(end !== undefined);
  assert.equal(before - peer!.session.credit, readU32(encodeMessage({ type: Type.RESPONSE }), 0));
});

test('offers end with the session; those of a provider at a static address are none', async () => {
  const address = 'tcp://127.0.0.1:7501';
  const made = await DispatcherWorld.start([{ ...service, providers: [address] }]);
  const provider = new Provider();
  provider.provide(100, () => {});
  await made.network.listen(address, provider.host(made.world.context()));
  await made.settle();
  const { offers } = made.dispatcher.registry;
  assert.equal(offers.of(100).length, 0);
  const dialled = await made.provider(100);
  assert.equal(offers.of(100).length, 1);
  dialled.session.close();
  made.network.cut(address);
  await made.settle();
  assert.equal(offers.of(100).length, 0);
  await provider.close();
});
