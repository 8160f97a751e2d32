import assert from 'node:assert/strict';
import { test } from 'node:test';
import { QUEUE, queueParts, settled, stored } from './bench.js';

test('a queue that drops its oldest keeps its bound of bytes after a restart, too, when borders of chunks are not known', async () => {
  const most = 300 * 1024;
  const parts = await queueParts({ full: 'dropOldest', maxBytes: '300KiB' });
  const provider = parts.provider();
  const bodies = (count: number) => Array.from({ length: count }, () => ({ body: 'x'.repeat(60) }));
  const queue = () => parts.made.dispatcher.queues.find(QUEUE)!;
  await settled(parts, provider.publishMany(QUEUE, bodies(2500)));
  await stored(parts);
  await parts.made.restart();
  await parts.advance(3000);
  assert.ok(queue().depth > 2000);
  for (let round = 0; round < 10; round++) {
    await settled(parts, provider.publishMany(QUEUE, bodies(500)));
    await stored(parts);
    assert.ok(queue().bytes <= most, `${queue().bytes} bytes`);
    assert.ok(queue().depth > 1000, `${queue().depth} messages`);
  }
  assert.equal(queue().last, 7500);
});
