import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TrunklineError } from '@trunkline/proto';
import { MAX_UNCONFIRMED, type Provider } from '@trunkline/publisher/core';
import type { Client, QueueMessage } from '@trunkline/subscriber/core';
import { ends } from './child-script.js';
import { items, QUEUE, queueParts, stored } from './queue-support.js';
import { Real } from './real.js';
import { FRONT } from './support.js';

interface Calls {
  readonly client: Client;
  readonly provider: Provider;
  readonly held: QueueMessage[];
  follow(call: Promise<unknown>): void;
}

// The runner fails a test during which a promise is rejected that nobody listens to.
const moments: Record<string, (calls: Calls) => void> = {
  publish: ({ provider, follow }) => {
    follow(provider.publish(QUEUE, 'x', { timeoutMs: 2000 }));
    follow(provider.publishMany(QUEUE, [{ body: 'y' }, { body: 'z' }], { timeoutMs: 2000 }));
    follow(provider.drained());
  },
  ack: ({ held, follow }) => {
    for (const [index, message] of held.splice(0, 3).entries()) {
      follow([() => message.ack(), () => message.nack(), () => message.extend()][index]!());
    }
  },
  consume: ({ client, follow }) => follow(client.consume(QUEUE, { group: 'other' }, () => {}).accepted),
  'a look at the queues': ({ client, follow }) => {
    follow(client.queues.list());
    follow(client.queues.purge(QUEUE));
  },
  close: ({ client, provider, held, follow }) => {
    follow(provider.publish(QUEUE, 'x'));
    for (const message of held.splice(0)) follow(message.ack());
    follow(client.close());
    follow(provider.close());
  },
};

for (const [moment, begin] of Object.entries(moments)) {
  test(`F26: a cut during ${moment}: every pending call ends once, with a code or its result`, async () => {
    const parts = await queueParts({ ackTimeout: '1h' });
    let begun = 0;
    let ended = 0;
    const follow = (call: Promise<unknown>) => {
      begun++;
      call.then(
        () => ended++,
        (error: TrunklineError) => {
          ended++;
          assert.match(error.code, /^(DISCONNECTED|TIMEOUT|CLOSED|NOT_HELD)$/);
        },
      );
    };
    for (let round = 0; round < 20; round++) {
      const client = parts.client();
      const provider = parts.provider();
      await items(parts, provider, 3);
      const held: QueueMessage[] = [];
      client.consume(QUEUE, { group: `g${round}`, ack: 'manual' }, (message) => void held.push(message));
      // without a listener it would go to the log, which is silent here
      client.on('error', () => {});
      await stored(parts);
      begin({ client, provider, held, follow });
      if (round % 2 === 0) await parts.settle();
      parts.made.network.cut(FRONT);
      if (round % 3 === 0) await parts.advance(100);
      parts.made.network.restore(FRONT);
      await parts.advance(10_000);
      await Promise.all([client.close(), provider.close()]);
      await stored(parts);
      assert.equal(ended, begun, `round ${round}`);
    }
    assert.ok(begun >= 20);
    assert.equal(parts.made.dispatcher.peers.size, 0);
  });
}

test('F28: unconfirmed publishes, a full bound and held messages keep no process alive once both ends are closed', async (t) => {
  const real = await Real.start(t, [{ code: QUEUE, kind: 'queue', storage: 'memory' }]);
  await ends(
    `const provider = await connectProvider(address);
     await provider.publishMany(${QUEUE}, [{ body: 'a' }, { body: 'b' }, { body: 'c' }]);
     const client = await connect(address);
     const loop = client.consume(${QUEUE}, { group: 'g' });
     const held = [];
     client.consume(${QUEUE}, { group: 'h', ack: 'manual' }, (message) => void held.push(message));
     for await (const message of loop) break;
     while (held.length < 3) await pause(5);
     const calls = Promise.allSettled([held[0].ack(), provider.publish(${QUEUE}, 'd'), client.queues.list()]);
     await Promise.all([client.close(), provider.close()]);
     await calls;`,
    real.address,
  );
  // the dispatcher was never there: what waits for it has five minutes
  await ends(
    `const provider = new Provider();
     provider.attach(openConnection('tcp://127.0.0.1:1', { attemptMs: 10 }));
     const calls = [];
     for (let index = 0; index < ${MAX_UNCONFIRMED} + 10; index++) calls.push(provider.publish(${QUEUE}, 'x'));
     calls.push(provider.publishMany(${QUEUE}, [{ body: 'y' }]), provider.drained());
     const settled = Promise.allSettled(calls);
     await provider.close();
     const codes = new Set((await settled).map(({ reason }) => reason?.code));
     if (![...codes].every((code) => ['LIMIT_EXCEEDED', 'DISCONNECTED', 'CLOSED'].includes(code))) throw new Error([...codes]);`,
    '',
  );
});
