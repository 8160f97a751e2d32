import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configure, noHandlers } from '../support/dispatcher-world.js';
import { events, QUEUE, queueParts, settled, stored } from './bench.js';

test('a reload adds, changes and takes out queues; one that cannot be applied changes nothing', async () => {
  const parts = await queueParts();
  const { dispatcher } = parts.made;
  const provider = parts.provider();
  const consumption = parts.client().consume(QUEUE, { group: 'g', ack: 'manual' }, () => {});
  const told = events(consumption);
  await settled(parts, provider.publish(QUEUE, 'a'));
  const reload = (services: object[]) => dispatcher.reload(configure(services, { dataDirectory: '/data' }), noHandlers);
  assert.throws(() => reload([{ code: QUEUE, kind: 'queue', storage: 'memory' }, { code: 9 }]), {
    code: 'OPTION_INVALID',
  });
  assert.equal(dispatcher.registry.service(9), undefined);

  const { diff } = reload([
    { code: QUEUE, kind: 'queue', maxMessages: 1 },
    { code: 5000, kind: 'queue' },
  ]);
  assert.deepEqual(diff.live, ['queues']);
  await stored(parts);
  assert.deepEqual(told, ['active']);
  assert.equal(await settled(parts, provider.publish(5000, 'x')), 1);
  await assert.rejects(settled(parts, provider.publish(QUEUE, 'b')), { code: 'QUEUE_FULL' });

  reload([{ code: 5000, kind: 'queue' }]);
  await stored(parts);
  assert.deepEqual(told, ['active', 'ended', 'end SERVICE_REMOVED']);
  await assert.rejects(settled(parts, provider.publish(QUEUE, 'b')), { code: 'UNKNOWN_SERVICE' });
  reload([
    { code: 5000, kind: 'queue' },
    { code: QUEUE, kind: 'queue' },
  ]);
  await stored(parts);
  assert.equal(dispatcher.queues.find(QUEUE)!.depth, 1);
});
