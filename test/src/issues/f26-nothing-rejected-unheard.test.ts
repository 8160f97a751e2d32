import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TrunklineError } from '@trunkline/proto';
import { FRONT, Parts } from './support.js';

// The runner fails a test during which a promise is rejected that nobody listens to. The same over sockets, with
// --unhandled-rejections=strict, is in the tests of the subscriber SDK.
const moments = ['subscribe', 'unsubscribe', 'request', 'close', 'nothing'] as const;

for (const moment of moments) {
  test(`F26: a cut during ${moment}: every pending call ends once, with a code or its result`, async () => {
    const parts = await Parts.start([{ code: 100 }]);
    const provider = parts.provider();
    provider.provide(100, ({ params }) => (params === undefined ? undefined : new Promise(() => {})));
    let ended = 0;
    let begun = 0;
    const follow = (call: Promise<unknown>) => {
      begun++;
      call.then(
        () => ended++,
        (error: TrunklineError) => {
          ended++;
          assert.equal(error.name, 'TrunklineError');
        },
      );
    };
    for (let round = 0; round < 50; round++) {
      const client = parts.client();
      const subscription = client.subscribe(100);
      if (round % 2 === 0) await parts.settle();
      if (moment === 'subscribe') follow(client.subscribe(100, { params: round }).accepted());
      if (moment === 'unsubscribe') follow(subscription.unsubscribe());
      if (moment === 'request') {
        follow(client.request(100, { params: round, timeoutMs: 5000 }));
        void client.request(100, { params: round, timeoutMs: 5000 }).catch(() => {});
      }
      if (moment === 'close') follow(client.close());
      parts.made.network.cut(FRONT);
      if (round % 3 === 0) await parts.advance(100);
      parts.made.network.restore(FRONT);
      await parts.advance(10_000);
      await client.close();
      await parts.settle();
      assert.equal(ended, begun, `round ${round}`);
    }
    assert.equal(parts.made.dispatcher.peers.size, 1);
  });
}
