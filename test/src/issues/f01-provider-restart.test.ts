import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BACK, Parts } from './support.js';

for (const providers of ['dynamic', [BACK]] as const) {
  test(`F1: a provider that comes back with an empty memory has its subscriptions again (${providers})`, async () => {
    const parts = await Parts.start([{ code: 100, providers, probeAfter: '2s' }]);
    const got: string[] = [];
    for (const name of ['one', 'two']) {
      parts.client().subscribe(100, { params: name }, (message) => void got.push(message.text()));
    }
    const expected: string[] = [];
    let silent = false;
    for (let life = 0; life < 20; life++) {
      const provider = providers === 'dynamic' ? parts.provider() : await parts.bind(BACK);
      const asked: unknown[] = [];
      provider.provide(100, (subscription) => {
        asked.push(subscription.params);
        subscription.respond(`${subscription.params} ${life}`);
      });
      // one that vanished without a word from its connection is known to be gone after the liveness bound
      await parts.advance(3000 + (silent ? 6000 : 0));
      assert.deepEqual(asked.sort(), ['one', 'two'], `life ${life}`);
      expected.push(`one ${life}`, `two ${life}`);
      assert.deepEqual([...got].sort(), [...expected].sort());
      silent = life % 2 === 1;
      if (provider.connection === undefined) await parts.killAt(BACK, provider);
      else parts.kill(provider.connection, !silent);
      // also away for longer than every timeout
      await parts.advance(life % 5 === 4 ? 600_000 : 10);
    }
  });
}
