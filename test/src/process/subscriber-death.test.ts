// F10: however a subscriber goes, nothing of it is left anywhere (rule 12), and nobody waits for a heartbeat to see it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../support/wait.js';
import type { Child } from './fixtures/child.js';
import { World } from './fixtures/world.js';

const COUNT = 50;

const ways: Record<string, (subscriber: Child) => Promise<unknown>> = {
  'kill -9': (subscriber) => subscriber.kill(),
  SIGTERM: async (subscriber) => {
    subscriber.signal('SIGTERM');
    await subscriber.ended();
  },
  'a polite close': (subscriber) => subscriber.call('close'),
  'one unsubscribe after the other': (subscriber) => subscriber.call('unsubscribeMany', 0, COUNT),
  'half of them unsubscribed, then kill -9': async (subscriber) => {
    await subscriber.call('unsubscribeMany', 0, COUNT / 2);
    await subscriber.kill();
  },
  'half of them unsubscribed, then a polite close': async (subscriber) => {
    await subscriber.call('unsubscribeMany', 0, COUNT / 2);
    await subscriber.call('close');
  },
};

test('nothing is left of a subscriber, whichever way it went (F10)', async (context) => {
  await using world = await World.start({
    // neither a heartbeat nor a response can be what tells
    session: { heartbeat: '10m' },
    services: [{ code: 1, limits: { maxStreams: COUNT } }],
  });
  const provider = await world.provider({ 1: {} }, { limits: { heartbeat: 600_000 } });
  let timers = (await world.status()).timers;
  for (const [way, leave] of Object.entries(ways)) {
    await context.test(way, async () => {
      const subscriber = await world.subscriber({ limits: { heartbeat: 600_000 } });
      await subscriber.call('subscribeMany', 1, 0, COUNT);
      await until(async () => (await provider.counts()).active === COUNT, 'the provider serves all');
      assert.equal((await world.status()).streams, COUNT);
      await leave(subscriber);
      await world.empty();
      await until(async () => (await provider.counts()).active === 0, 'the provider stopped all');
      if (subscriber.exit === undefined) await subscriber.kill();
      await until(async () => (await world.sessions()).length === 1, 'only the session of the provider is left');
      await until(async () => (await world.status()).timers <= timers, 'its timers are gone');
      timers = (await world.status()).timers;
    });
  }
  const { started, stopped } = await provider.report();
  assert.deepEqual(stopped, started);
  assert.equal((await world.sessions())[0]!.outboxBytes, 0);
});
