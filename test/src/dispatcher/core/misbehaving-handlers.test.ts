import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Handlers, LaneDelivery, LaneView, ReturnHandler, SendHandler } from '@trunkline/dispatcher';
import { encodeMessage, type TrunklineError } from '@trunkline/proto';
import { DispatcherWorld, noHandlers, nothing } from '../../support/dispatcher-world.js';

const modules = (kind: string, name: string) => ({ modules: { [kind]: { [name]: { path: './x.mjs' } } } });

function withReturn(handler: ReturnHandler): Promise<DispatcherWorld> {
  const handlers: Handlers = { ...noHandlers, return: new Map([['custom', handler]]) };
  const service = { code: 100, providers: 'dynamic', returnHandlers: ['custom', 'broadcast'] };
  return DispatcherWorld.start([service], modules('returnHandlers', 'custom'), handlers);
}

for (const [what, open] of [
  [
    'throws',
    () => {
      throw new Error('a bug');
    },
  ],
  ['returns nothing', () => undefined as unknown as LaneDelivery],
  ['returns something else', () => ({}) as LaneDelivery],
] as const) {
  test(`a return handler whose open ${what} refuses the request, which leaves nothing`, async () => {
    const made = await withReturn({ open });
    await made.provider(100);
    const subscriber = await made.peer();
    subscriber.request(100, 1, { filter: 'key == "a" && attrs.x > 1', params: 1 });
    subscriber.request(100, 2);
    await made.settle();
    assert.deepEqual(
      subscriber.take('REFUSED').map(({ fields }) => [fields.request, fields.code]),
      [
        [1, 'HANDLER_FAILED'],
        [2, 'HANDLER_FAILED'],
      ],
    );
    assert.deepEqual(made.leftovers(), nothing);
    subscriber.request(100, 3, { returnHandler: 'broadcast', params: 1 });
    await made.settle();
    assert.equal(made.dispatcher.registry.streamCount, 1);
  });
}

test('a return handler that keeps its lane and members after they are gone reaches nobody and starts no timer', async () => {
  let lane: LaneView | undefined;
  const made = await withReturn({
    open(opened) {
      lane = opened;
      return { deliver: () => {} };
    },
  });
  const provider = await made.provider(100);
  const subscriber = await made.peer();
  subscriber.request(100, 1);
  await made.settle();
  provider.answer(provider.take('REQUEST')[0]!);
  await made.settle();
  const [member] = lane!.members;
  assert.throws(() => lane!.wake(Number.NaN), { code: 'OPTION_INVALID' });
  subscriber.cancel(1);
  await made.settle();
  subscriber.take();
  const timers = made.world.timers.size;
  const message = encodeMessage({ type: 2, code: 100 }, 'late');
  member!.send(message, 0, message.length, 1);
  lane!.wake(10);
  await made.settle();
  assert.deepEqual(subscriber.take(), []);
  assert.equal(made.world.timers.size, timers);
});

test('return handlers that throw with every response are counted, and the rest of the stream goes on', async () => {
  const fail = () => {
    throw new Error('a bug');
  };
  const made = await withReturn({ open: () => ({ deliver: fail, flush: fail, onTimer: fail }) });
  const provider = await made.provider(100);
  const [bad, good] = [await made.peer(), await made.peer()];
  bad.request(100, 1);
  good.request(100, 1, { returnHandler: 'broadcast' });
  await made.settle();
  const [request] = provider.take('REQUEST');
  for (let n = 0; n < 5; n++) {
    provider.respond(request!, `${n}`);
    await made.settle();
  }
  provider.end(request!);
  await made.settle();
  assert.equal(good.take('RESPONSE').length, 5);
  assert.equal(bad.take('END').length, 1);
  assert.ok(made.dispatcher.core.counters.handlerErrors >= 5);
  assert.deepEqual(made.leftovers(), nothing);
});

test('a send handler that throws, or chooses what it was not offered, falls back on the first provider', async () => {
  const answers: (() => unknown)[] = [
    () => {
      throw new Error('a bug');
    },
    () => undefined,
    () => 'first',
    () => [{ label: 'x', id: 'x', load: 0 }],
    () => Promise.reject(new Error('a bug, later')),
  ];
  let turn = 0;
  const choose = (() => answers[turn++ % answers.length]!()) as unknown as SendHandler['choose'];
  const handlers: Handlers = { ...noHandlers, send: new Map([['custom', { choose }]]) };
  const service = { code: 100, providers: 'dynamic', sendHandler: 'custom' };
  const made = await DispatcherWorld.start([service], modules('sendHandlers', 'custom'), handlers);
  const [first, second] = [await made.provider(100), await made.provider(100)];
  const subscriber = await made.peer();
  for (let request = 1; request <= answers.length; request++) subscriber.request(100, request, { params: request });
  await made.settle();
  assert.equal(first.take('REQUEST').length, answers.length);
  assert.equal(second.take('REQUEST').length, 0);
  assert.equal(made.dispatcher.core.counters.handlerErrors, 2);
});

test('an answer to an application message has a type of one, and goes nowhere once the sender is gone', async () => {
  const seen: unknown[] = [];
  let later: (() => boolean) | undefined;
  const handlers: Handlers = {
    ...noHandlers,
    application: new Map([
      [
        130,
        {
          onMessage: (_message, context) => {
            for (const type of [2, 127, 256, 130.5]) {
              try {
                context.reply(type, new Uint8Array(1));
              } catch (error) {
                seen.push((error as TrunklineError).code);
              }
            }
            later = () => context.reply(130, new Uint8Array(1));
          },
        },
      ],
    ]),
  };
  const made = await DispatcherWorld.start([{ code: 100, providers: 'dynamic' }], {}, handlers);
  const peer = await made.peer();
  const message = encodeMessage({ type: 130, code: 100 }, 'x');
  peer.session.sendData(message, 0, message.length, 1);
  await made.settle();
  assert.deepEqual(seen, Array(4).fill('OPTION_INVALID'));
  assert.equal(later!(), true);
  peer.session.close();
  await made.settle();
  assert.equal(later!(), false);
});
