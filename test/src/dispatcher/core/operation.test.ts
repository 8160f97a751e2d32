import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HEADER_BYTES, writeHeader } from '@trunkline/proto';
import {
  ADDRESS,
  configure,
  DispatcherWorld,
  noHandlers,
  nothing,
  type RawPeer,
} from '../../support/dispatcher-world.js';

const service = (code: number | string, more: object = {}) => ({
  code,
  name: `s${code}`,
  providers: 'dynamic',
  ...more,
});

test('reload: a service that is gone ends its streams with a reason, one that did not change sees nothing (F18, F90)', async () => {
  const made = await DispatcherWorld.start([service(100), service(200)]);
  const provider = await made.provider(100, 200);
  const peer = await made.peer();
  peer.request(100, 1);
  peer.request(200, 2);
  await made.settle();
  for (const request of provider.take('REQUEST')) provider.answer(request);
  await made.settle();
  peer.take();
  const report = made.dispatcher.reload(configure([service(100), service(300)]), noHandlers);
  await made.settle();
  assert.deepEqual([report.removed, report.ended, report.moved], [['200'], 1, 0]);
  assert.deepEqual(
    peer.take().map(({ type, code, fields }) => [type, code, fields.code]),
    [['END', 200, 'SERVICE_REMOVED']],
  );
  assert.deepEqual(
    provider.take().map(({ type, code }) => [type, code]),
    [['CANCEL', 200]],
  );
  peer.request(200, 3);
  await made.settle();
  assert.deepEqual(
    peer.take().map(({ fields }) => fields.code),
    ['UNKNOWN_SERVICE'],
  );
});

test('reload: a changed address moves only the streams of its service', async () => {
  const listen = 'tcp://127.0.0.1:7501';
  const made = await DispatcherWorld.start([service(100), service(200)]);
  const provider = await made.provider(100, 200);
  const peer = await made.peer();
  for (const code of [100, 200]) peer.request(code, code);
  await made.settle();
  for (const request of provider.take('REQUEST')) provider.answer(request);
  await made.settle();
  peer.take();
  const report = made.dispatcher.reload(configure([service(100), service(200, { providers: [listen] })]), noHandlers);
  await made.settle();
  assert.equal(report.moved, 1);
  assert.deepEqual(
    peer.take().map(({ type, code, fields }) => [type, code, fields.state]),
    [['STATUS', 200, 'stale']],
  );
  assert.deepEqual(
    provider.take().map(({ type, code }) => [type, code]),
    [['CANCEL', 200]],
  );
});

test('reload: the same content is no change; narrower entries take over their codes', async () => {
  const made = await DispatcherWorld.start([service('100-199', { keep: 'last' })]);
  assert.equal(
    made.dispatcher.reload(configure([service('100-199', { keep: 'last' })]), noHandlers).diff.unchanged,
    true,
  );
  const provider = await made.provider(150);
  const peer = await made.peer();
  peer.request(150, 1);
  await made.settle();
  const [request] = provider.take('REQUEST');
  provider.answer(request!);
  await made.settle();
  made.dispatcher.reload(configure([service('100-199'), service(150, { linger: '1s' })]), noHandlers);
  await made.settle();
  peer.take();
  peer.cancel(1);
  await made.settle();
  assert.equal(provider.take().length, 0, 'the linger of the narrower entry holds');
  await made.advance(1100);
  assert.equal(provider.take('CANCEL').length, 1);
  assert.deepEqual(made.leftovers(), nothing);
});

const refusals: [string, object, object, string][] = [
  ['a filter that does not compile', {}, { filter: 'attrs.x >' }, 'FILTER_INVALID'],
  ['a filter that is no condition', {}, { filter: '"text"' }, 'FILTER_INVALID'],
  [
    'a return handler that is not allowed',
    { returnHandlers: ['broadcast'] },
    { returnHandler: 'group', group: 'g' },
    'RETURN_HANDLER_NOT_ALLOWED',
  ],
  ['a group without a name', {}, { returnHandler: 'group' }, 'RETURN_HANDLER_NOT_ALLOWED'],
  ['an overflow policy that was not opted into', {}, { overflow: 'block' }, 'OVERFLOW_NOT_ALLOWED'],
  ['params beyond the limit', { limits: { maxParams: 10 } }, { params: 'x'.repeat(20) }, 'LIMIT_EXCEEDED'],
  ['one stream too many', { limits: { maxStreams: 1 } }, { params: 2 }, 'LIMIT_EXCEEDED'],
  ['one subscriber too many', { limits: { maxSubscribers: 1 } }, {}, 'LIMIT_EXCEEDED'],
];
for (const [what, definition, options, code] of refusals) {
  test(`${what} is refused, and leaves nothing and nobody disturbed`, async () => {
    const made = await DispatcherWorld.start([service(100, definition)]);
    const provider = await made.provider(100);
    const peer = await made.peer();
    peer.request(100, 1);
    peer.request(100, 2, options);
    await made.settle();
    const [refused] = peer.take('REFUSED');
    assert.deepEqual([refused!.fields.request, refused!.fields.code], [2, code]);
    assert.ok(String(refused!.fields.message).length > 0);
    if (code === 'FILTER_INVALID') assert.ok(Number(refused!.fields.position) >= 1);
    assert.equal(provider.take('REQUEST').length, 1);
    peer.cancel(1);
    await made.settle();
    assert.deepEqual(made.leftovers(), nothing);
  });
}

test('request ids: 0 and one in use are refused, a repetition is answered again', async () => {
  const made = await DispatcherWorld.start([service(100)]);
  const provider = await made.provider(100);
  const peer = await made.peer();
  peer.request(100, 0);
  peer.request(100, 1);
  peer.request(100, 1);
  peer.request(100, 1, { params: 'other' });
  await made.settle();
  assert.deepEqual(
    peer.take().map(({ fields }) => [fields.request, fields.code]),
    [
      [0, 'REQUEST_INVALID'],
      [1, 'REQUEST_INVALID'],
    ],
  );
  provider.answer(provider.take('REQUEST')[0]!);
  await made.settle();
  peer.request(100, 1);
  await made.settle();
  assert.deepEqual(
    peer.take().map(({ type }) => type),
    ['ACCEPTED', 'ACCEPTED'],
  );
  peer.cancel(1);
  peer.cancel(1);
  peer.cancel(99);
  await made.settle();
  assert.deepEqual(made.leftovers(), nothing);
});

test('two overflow policies in one session are two lanes: no response comes twice', async () => {
  const made = await DispatcherWorld.start([service(100)]);
  const provider = await made.provider(100);
  const peer = await made.peer();
  peer.request(100, 1, { overflow: 'latest' });
  peer.request(100, 2, { overflow: 'dropOldest' });
  await made.settle();
  provider.respond(provider.take('REQUEST')[0]!, 'x');
  await made.settle();
  assert.equal(new Set(peer.take('RESPONSE').map(({ line }) => line)).size, 2);
});

test('a malformed batch is dropped whole, counted by reason, and disturbs nobody (F45, F46)', async () => {
  const made = await DispatcherWorld.start([service(100)]);
  const provider = await made.provider(100);
  const peer = await made.peer();
  peer.request(100, 1);
  await made.settle();
  const [request] = provider.take('REQUEST');
  provider.answer(request!);
  await made.settle();
  const bad = new Uint8Array(64);
  writeHeader(bad, 0, HEADER_BYTES, { type: 3 });
  writeHeader(bad, 32, 0xffffffff, { type: 1 });
  const stranger = made.network.dial(ADDRESS, { onBatch: () => {} });
  for (const batch of [bad, new Uint8Array(0), new Uint8Array(1), new Uint8Array(5).fill(255)]) {
    stranger.send(batch);
    provider.session.link.send(batch);
    await made.settle();
  }
  await made.settle();
  provider.respond(request!, 'fine');
  await made.settle();
  assert.deepEqual(
    peer.take('RESPONSE').map(({ body }) => body),
    ['fine'],
  );
  const { faults } = [...made.dispatcher.peers.values()][0]!.session;
  assert.deepEqual({ ...faults }, { length: 1, short: 2 });
  assert.ok(made.dispatcher.host.strangers >= 3);
  assert.equal(made.dispatcher.peers.size, 2);
});

async function ask(made: DispatcherWorld, peer: RawPeer, params: object): Promise<{ type: string; value: never }> {
  peer.request(0, 77, { params });
  await made.settle();
  const [refused] = peer.take('REFUSED');
  if (refused !== undefined) return { type: String(refused.fields.code), value: undefined as never };
  const [response] = peer.take('RESPONSE');
  peer.take();
  return { type: 'ok', value: JSON.parse(response!.body) as never };
}

test('code 0 shows what the dispatcher holds, in pages, and ends a session on demand (F19)', async () => {
  const made = await DispatcherWorld.start([service(100)]);
  const provider = await made.provider(100);
  const [peer, other] = [await made.peer(), await made.peer()];
  for (let id = 1; id <= 5; id++) other.request(100, id, { params: { id } });
  await made.settle();
  provider.answer(provider.take('REQUEST')[0]!);
  await made.settle();
  const { value: first } = await ask(made, peer, { show: 'streams', limit: 3 });
  const { items, next } = first as { items: { params: string; status: string; subscribers: number }[]; next: number };
  assert.deepEqual(
    items.map(({ params, status, subscribers }) => [params, status, subscribers]),
    [
      ['{"id":1}', 'live', 1],
      ['{"id":2}', 'pending', 1],
      ['{"id":3}', 'pending', 1],
    ],
  );
  const { value: rest } = await ask(made, peer, { show: 'streams', limit: 3, after: next });
  assert.equal((rest as { items: object[] }).items.length, 2);
  for (const show of ['status', 'services', 'sessions', 'providers']) {
    assert.equal((await ask(made, peer, { show })).type, 'ok', show);
  }
  for (const params of [{ show: 'nonsense' }, {}, { show: 'streams', limit: 0 }, { show: 'streams', after: 'x' }]) {
    assert.equal((await ask(made, peer, params)).type, 'PARAMS_INVALID');
  }
  const { value: sessions } = await ask(made, peer, { show: 'sessions' });
  const { id } = (sessions as { items: { id: number; requests: number }[] }).items.find(
    ({ requests }) => requests === 5,
  )!;
  assert.deepEqual((await ask(made, peer, { do: 'kick', session: id })).value, { kicked: true });
  assert.equal(other.closed, 'KICKED');
  assert.deepEqual((await ask(made, peer, { do: 'kick', session: id })).value, { kicked: false });
  // one without a file
  assert.equal((await ask(made, peer, { do: 'reload' })).type, 'OPTION_INVALID');
  assert.deepEqual(made.leftovers(), nothing);
});

test('credentials that are not among the tokens are refused before anything exists', async () => {
  const made = await DispatcherWorld.start([service(100)], { tokens: ['right'] });
  const peer = await made.peer();
  assert.equal(peer.closed, 'UNAUTHENTICATED');
  assert.equal(made.dispatcher.peers.size, 0);
});

test('stop answers no request, says BYE to everybody and reports what it dropped (F100)', async () => {
  const made = await DispatcherWorld.start([service(100)], { drain: '1s' });
  const provider = await made.provider(100);
  const slow = await made.peer({ receiveWindow: 1000 });
  slow.consuming = false;
  slow.request(100, 1);
  await made.settle();
  const [request] = provider.take('REQUEST');
  for (let n = 0; n < 5; n++) {
    provider.respond(request!, 'x'.repeat(900));
    await made.settle();
  }
  const stopping = made.dispatcher.stop();
  await made.settle();
  slow.request(100, 2, { params: 'late' });
  await made.advance(1100);
  const report = await stopping;
  assert.equal(report.sessions, 1);
  assert.ok(report.undeliveredBytes > 900);
  assert.equal(provider.take('REQUEST').length, 0);
  assert.deepEqual([slow.closed, provider.closed], ['SHUTTING_DOWN', 'SHUTTING_DOWN']);
  assert.deepEqual(made.leftovers(), nothing);
});
