import assert from 'node:assert/strict';
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { runInNewContext } from 'node:vm';
import { until } from '../../support/wait.js';
import { Record, testKinds, transport } from './record.js';

testKinds('young garbage is collected after every 24 MiB received, and nobody else gets `gc`', async (t, kind) => {
  let forced = 0;
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { kind, flags } = (entry as unknown as { detail: { kind: number; flags: number } }).detail;
      if (kind === constants.NODE_PERFORMANCE_GC_MINOR && (flags & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) !== 0)
        forced++;
    }
  });
  observer.observe({ entryTypes: ['gc'] });
  t.after(() => observer.disconnect());
  const made = transport(t, kind);
  const server = new Record();
  const client = new Record();
  const listener = await made.listen('tcp://127.0.0.1:*', server);
  const link = made.dial(listener.address, client);
  await until(() => client.up, 'it is connected');
  const batch = new Uint8Array(256 * 1024);
  for (let count = 0; count < 160; count++) link.send(batch);
  await until(() => server.batches.length === 160 && forced > 0, 'all arrived and a collection was told');
  assert.ok(forced <= 2, `${forced} times in 40 MiB`);
  assert.equal(runInNewContext('typeof gc'), 'undefined');
});
