import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Flag } from '@trunkline/proto';
import { configure, DispatcherWorld, noHandlers } from '../../support/dispatcher-world.js';

const service = (more: object) => ({ code: 100, name: 'test', providers: 'dynamic', ...more });
const KIB = 1024;

for (const keep of [{ ring: 1000 }, { lastPerKey: 1000 }]) {
  test(`${JSON.stringify(keep)} keeps no more bytes than maxKept, and a resume is told what it dropped`, async () => {
    const made = await DispatcherWorld.start([service({ keep, limits: { maxKept: '8KiB' } })]);
    const provider = await made.provider(100);
    const first = await made.peer();
    first.request(100, 1);
    await made.settle();
    const [request] = provider.take('REQUEST');
    for (let n = 1; n <= 200; n++) {
      provider.respond(request!, `${n}`.padEnd(KIB - 100, '.'), { key: `key ${n}` });
      if (n % 20 === 0) await made.settle();
    }
    await made.settle();
    const { epoch } = first.take('ACCEPTED')[0]!.fields as { epoch: Uint8Array };
    const late = await made.peer();
    late.request(100, 1, { start: { from: 2, sequence: 150, epoch } });
    await made.settle();
    const kept = late.take('RESPONSE').filter(({ flags }) => (flags & Flag.SNAPSHOT_END) === 0);
    assert.ok(kept.length >= 6 && kept.length <= 8, `${kept.length} kept`);
    assert.equal(kept.at(-1)?.sequence, 200);
    const [gap] = late.take('GAP');
    assert.deepEqual([gap!.fields.first, gap!.fields.last], [151, kept[0]!.sequence - 1]);
    assert.equal(late.take('ACCEPTED')[0]!.fields.resumed, false);

    // one that is larger than all that may be kept is not kept, and neither is what was before it
    provider.respond(request!, 'x'.repeat(10 * KIB), { key: 'large' });
    await made.settle();
    const later = await made.peer();
    later.request(100, 1);
    await made.settle();
    assert.deepEqual(
      later.take('RESPONSE').map(({ flags }) => flags),
      [Flag.SNAPSHOT | Flag.SNAPSHOT_END],
    );
  });
}

test('a reload that changes maxKept begins to keep anew, and one that does not keeps what there is', async () => {
  const services = [service({ keep: { ring: 10 } })];
  const made = await DispatcherWorld.start(services);
  const provider = await made.provider(100);
  const first = await made.peer();
  first.request(100, 1);
  await made.settle();
  provider.respond(provider.take('REQUEST')[0]!, 'a');
  await made.settle();
  const joins = async (request: number) => {
    const peer = await made.peer();
    peer.request(100, request);
    await made.settle();
    return peer.take('RESPONSE').map(({ body }) => body);
  };
  made.dispatcher.reload(configure(services), noHandlers);
  assert.deepEqual(await joins(1), ['a', '']);
  made.dispatcher.reload(configure([service({ keep: { ring: 10 }, limits: { maxKept: '1KiB' } })]), noHandlers);
  assert.deepEqual(await joins(2), ['']);
});

test('latest: what a lane holds back is bounded in bytes and keys; beyond that the oldest goes out early', async () => {
  const made = await DispatcherWorld.start([
    service({ returnHandlers: ['latest'], latestRate: 0.001, overflow: ['dropOldest'] }),
  ]);
  const provider = await made.provider(100);
  const subscriber = await made.peer({ receiveWindow: 256 * KIB * KIB });
  subscriber.request(100, 1);
  await made.settle();
  const [request] = provider.take('REQUEST');
  for (let n = 0; n < 20; n++) provider.respond(request!, `first ${n}`, { key: `${n}` });
  await made.settle();
  assert.equal(subscriber.take('RESPONSE').length, 20);
  const large = 'x'.repeat(KIB * KIB);
  for (let n = 0; n < 20; n++) {
    provider.respond(request!, large, { key: `${n}` });
    await made.settle();
  }
  assert.equal(subscriber.take('RESPONSE').length, 5, '15 MiB and a little are held');
  provider.end(request!);
  await made.settle();
  assert.equal(subscriber.take('RESPONSE').length, 15);
  assert.equal(subscriber.take('END').length, 1);
});
