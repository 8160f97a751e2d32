import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FRONT, Parts } from './support.js';

test('F6: an application that subscribes again in every connected event gets each item once per handle', async () => {
  const parts = await Parts.start([{ code: 100 }]);
  let respond: (body: string) => void = () => {};
  let running = 0;
  let stops = 0;
  parts.provider().provide(100, (subscription) => {
    running++;
    respond = (body) => subscription.respond(body);
    return () => {
      running--;
      stops++;
    };
  });
  const client = parts.client();
  const got: string[] = [];
  const handles: { unsubscribe(): Promise<void> }[] = [];
  client.on('state', (state) => {
    if (state !== 'connected') return;
    const name = handles.length;
    handles.push(client.subscribe(100, {}, (message) => void got.push(`${name} ${message.text()}`)));
  });
  await parts.settle();
  for (let round = 0; round < 5; round++) {
    parts.made.network.cut(FRONT);
    await parts.advance(1000);
    parts.made.network.restore(FRONT);
    await parts.advance(10_000);
  }
  assert.deepEqual([handles.length, running], [6, 1]);
  respond('item');
  await parts.settle();
  assert.deepEqual(
    got.sort(),
    [0, 1, 2, 3, 4, 5].map((name) => `${name} item`),
  );
  stops = 0;
  for (const handle of handles) {
    assert.equal(stops, 0);
    await handle.unsubscribe();
    await parts.settle();
  }
  assert.deepEqual([stops, running], [1, 0]);
});
