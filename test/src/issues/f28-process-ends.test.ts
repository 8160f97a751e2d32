import { test } from 'node:test';
import { ends } from './child-script.js';
import { Real } from './real.js';

// What the SDKs alone do is in their own tests; here are the ends of a client that has much under way.
test('F28: a client for a dead address that is closed at once or later, with calls under way', async () => {
  for (const ms of [0, 50]) {
    await ends(
      `const client = new Client(openConnection(['tcp://127.0.0.1:1', 'tcp://127.0.0.1:2'], { attemptMs: 10 }));
       client.subscribe(100).on('error', () => {});
       const call = client.request(100, { timeoutMs: 90_000 }).catch(() => {});
       const send = client.send(130, 100, 'x').catch(() => {});
       ${ms === 0 ? '' : `await pause(${ms});`}
       await client.close();
       await Promise.all([call, send]);`,
      '',
    );
  }
});

test('F28: both roles on one connection, closed after success, and a dispatcher that is gone by then', async (t) => {
  const real = await Real.start(t, [{ code: 100, linger: '1h' }]);
  await ends(
    `const client = await connect(address);
     const provider = await connectProvider(client.connection);
     provider.provide(100, (subscription) => void subscription.respond('item'));
     for await (const message of client.subscribe(100)) { if (message.text() === 'item') break; }
     const rest = client.subscribe(100, { params: 1 });
     const call = client.request(100, { params: 2, timeoutMs: 90_000 }).catch(() => {});
     await Promise.all([provider.close(), client.close()]);
     await call;`,
    real.address,
  );
});
