// A publisher that never waits, while the dispatcher stands still (F38, F87).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../../support/wait.js';
import { CODE, queueWorld } from './members.js';
import type { Flood, Outcomes } from './publisher-process.js';

const MEBI = 2 ** 20;
/** Bytes that a publisher keeps unconfirmed. */
const BOUND = 64 * MEBI;

for (const sessionLost of [false, true]) {
  const what = sessionLost ? 'until the session is lost' : 'for a while';
  test(`a publisher floods a dispatcher that stands still ${what}: bounded memory, and what was taken is stored once (F38, F87)`, async () => {
    const heartbeat = sessionLost ? 200 : 60_000;
    await using world = await queueWorld(
      { maxMessages: 1_000_000, maxBytes: '1GiB' },
      { session: { heartbeat: `${heartbeat}ms` } },
    );
    const publisher = world.child('../queues/publisher-process.js');
    await publisher.call('open', world.address, heartbeat);
    const rss = await publisher.call<number>('rss');
    world.dispatcher.signal('SIGSTOP');
    const flood = () => publisher.call<Flood>('flood', CODE, 1000, 2000);
    const { taken, refused, mostRss } = await flood();
    const again = await flood();
    world.dispatcher.signal('SIGCONT');
    assert.ok(refused > 0 && taken * 2000 < BOUND + MEBI, `${taken} were taken, ${refused} were not`);
    assert.ok(again.refused > 0 && again.taken === 0, `${again.taken} more were taken`);
    // the messages themselves, their promises, and what waits to be collected
    assert.ok(mostRss - rss < 4 * BOUND, `${Math.round((mostRss - rss) / MEBI)} MiB more than before`);
    assert.ok(
      again.mostRss - mostRss < BOUND,
      `${Math.round((again.mostRss - mostRss) / MEBI)} MiB more than at first`,
    );
    const outcomes = () => publisher.call<Outcomes>('outcomes');
    await until(async () => (await outcomes()).unconfirmed === 0, 'all that was taken is confirmed', 20_000);
    assert.deepEqual(await outcomes(), { stored: taken, failed: {}, unconfirmed: 0, places: taken });
    const client = await world.client({ limits: { heartbeat: 1000 } });
    const [queue] = await client.queues.list();
    assert.deepEqual([queue!.last, queue!.messages], [taken, taken]);
  });
}
