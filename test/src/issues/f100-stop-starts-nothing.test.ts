import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client } from '@trunkline/subscriber/core';
import { configure, noHandlers, nothing } from '../support/dispatcher-world.js';
import { BACK, FRONT, Parts } from './support.js';

/** What is under way when the stop comes. Signals and exits of the process are in the process tests. */
const moments: Record<string, (parts: Parts, clients: readonly Client[]) => unknown> = {
  'while requests are unanswered': (parts) => parts.client().subscribe(100, { params: 'new' }),
  'while clients reconnect': (_parts, clients) => {
    for (const { connection } of clients) connection.session!.lost('cut');
  },
  'right after a reload that moves streams': async (parts) => {
    const moved = [{ code: 100 }, { code: 200, providers: [BACK] }];
    parts.made.dispatcher.reload(configure(moved, { drain: '3s' }), noHandlers);
    await parts.settle();
  },
  'while a static provider comes back': async (parts) => {
    parts.made.network.cut(BACK);
    await parts.settle();
    parts.made.network.restore(BACK);
  },
  'while the provider is silent': (parts) => {
    for (const link of parts.made.network.links(BACK)) link.deaf = true;
  },
};

for (const [moment, begin] of Object.entries(moments)) {
  test(`F100: a stop ${moment} ends, and no new request goes upstream after it`, async () => {
    const services = [
      { code: 100, providers: [BACK], resendAfter: '500ms', probeAfter: '500ms' },
      { code: 200 },
      { code: 300 },
    ];
    const parts = await Parts.start(services, { drain: '3s' });
    const { world, dispatcher } = parts.made;
    const bound = await parts.bind(BACK);
    // answers every other one
    bound.provide(100, ({ params }) => (params === 1 ? new Promise(() => {}) : undefined));
    const clients = [parts.client(), parts.client()];
    for (const client of clients) for (const params of [1, 2]) client.subscribe(100, { params });
    clients[0]!.subscribe(200);
    // somebody takes nothing, so that the whole drain time is used
    let more = () => false;
    const filler = parts.provider();
    filler.provide(300, (subscription) => {
      more = () => subscription.respond('x'.repeat(5000));
    });
    const stuck = parts.client({ receiveWindow: 4096 });
    stuck.subscribe(300, {}, () => new Promise(() => {}));
    await parts.advance(100);
    for (let item = 0; item < 3; item++) {
      more();
      await parts.settle();
    }
    await begin(parts, clients);
    const stopping = [dispatcher.stop(), dispatcher.stop()];
    const begun = dispatcher.core.now();
    parts.wire.length = 0;
    // one that asks during the stop, and a provider that offers
    clients[1]!.subscribe(100, { params: 'late' });
    const late = parts.provider();
    late.provide(200, () => {});
    await parts.advance(2900);
    assert.ok(dispatcher.peers.size > 0, 'it drains');
    await parts.advance(1100);
    const [report] = await Promise.all(stopping);
    assert.ok(report!.undeliveredBytes > 0 && dispatcher.core.now() - begun === 4000);
    const upstream = ({ from, type }: { from: string; type: string }) =>
      (type === 'REQUEST' || type === 'PROBE') && (from === BACK || from === `from ${FRONT}`);
    assert.deepEqual(parts.wire.filter(upstream), []);
    assert.equal(dispatcher.peers.size, 0);
    assert.deepEqual(parts.made.leftovers(), nothing);
    await Promise.all([...clients, bound, late, filler, stuck].map((each) => each.close()));
    await parts.advance(10_000);
    assert.equal(world.timers.size, 0);
  });
}
