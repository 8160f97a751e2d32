import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client, Subscription } from '@trunkline/subscriber/core';
import { nothing } from '../support/dispatcher-world.js';
import { Parts } from './support.js';

type Leave = (parts: Parts, client: Client, subscriptions: Subscription[]) => unknown;

const ways: Record<string, Leave> = {
  'closes politely': (_parts, client) => client.close(),
  'is killed': (parts, client) => parts.kill(client.connection),
  'vanishes without a word': (parts, client) => parts.kill(client.connection, false),
  'unsubscribes one by one': async (parts, _client, subscriptions) => {
    for (const subscription of subscriptions) {
      await subscription.unsubscribe();
      await parts.settle();
    }
  },
  'unsubscribes half and is killed': async (parts, client, subscriptions) => {
    for (const subscription of subscriptions.slice(25)) await subscription.unsubscribe();
    parts.kill(client.connection);
  },
  'unsubscribes half and closes in the same tick': (_parts, client, subscriptions) => {
    for (const subscription of subscriptions.slice(25)) void subscription.unsubscribe();
    return client.close();
  },
  'is kicked by an operator': (parts) => {
    const { dispatcher } = parts.made;
    for (const peer of [...dispatcher.peers.values()]) if (peer.requests.size > 0) dispatcher.kick(peer.id);
  },
};

for (const [what, leave] of Object.entries(ways)) {
  for (const linger of ['0s', '3s']) {
    test(`F10: nothing is left of a subscriber that ${what} (linger ${linger})`, async () => {
      const parts = await Parts.start([{ code: 100, keep: 'last', linger }]);
      const { world, dispatcher } = parts.made;
      const provider = parts.provider();
      // answers every other one with a response, every other one with nothing at all yet
      provider.provide(100, (subscription) => {
        if ((subscription.params as number) % 2 === 0) return new Promise(() => {});
        return void subscription.respond('item');
      });
      await parts.advance(5000);
      const timers = world.timers.size;
      const sessions = dispatcher.peers.size;
      const client = parts.client();
      const options = [{}, { filter: 'key == "a"' }, { return: 'group', group: 'g' }, { return: 'latest', rate: 1 }];
      const subscriptions = Array.from({ length: 50 }, (_, params) =>
        client.subscribe(100, { params, ...options[params % 4] }),
      );
      await parts.advance(1000);
      assert.equal(provider.subscriptions, 50);
      await leave(parts, client, subscriptions);
      await parts.advance(10_000);
      await client.close();
      await parts.advance(10_000);
      assert.equal(provider.subscriptions, 0);
      assert.deepEqual(parts.made.leftovers(), nothing);
      assert.deepEqual(client.counts, { subscriptions: 0, lines: 0, calls: 0, sends: 0 });
      assert.deepEqual([dispatcher.peers.size, world.timers.size], [sessions, timers]);
    });
  }
}
