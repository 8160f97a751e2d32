import assert from 'node:assert/strict';
import { until } from '../../support/wait.js';
import { connected, numbered, testEnds } from './record.js';

const spin = (ms: number) => {
  for (const from = performance.now(); performance.now() - from < ms; );
};

testEnds(
  'what is dear to handle ends a step: timers run between such batches, however many wait',
  async (t, ...kinds) => {
    const { server, link } = await connected(t, ...kinds, { handle: () => spin(30) });
    for (let count = 0; count < 20; count++) link.send(new Uint8Array(200));
    await until(() => server.batches.length === 20, 'all arrived');
    await until(() => server.steps.length === 20, 'each was a step of its own');
    assert.ok(server.steps.every((batches) => batches === 1));
  },
);

testEnds('steps that are full before they are long do not add up: timers run between them', async (t, ...kinds) => {
  const { server, link } = await connected(t, ...kinds, { listening: { stepBatches: 4 } });
  let turns = 0;
  const ticking = setInterval(() => turns++, 1);
  t.after(() => clearInterval(ticking));
  let most = 0;
  let turn = -1;
  let spent = 0;
  server.handle = () => {
    if (turn !== turns) spent = 0;
    turn = turns;
    spin(2);
    spent++;
    most = Math.max(most, spent);
  };
  for (let count = 0; count < 200; count++) link.send(new Uint8Array(200));
  await until(() => server.batches.length === 200, 'all arrived');
  assert.ok(most <= 40, `${most} batches without a timer`);
});

testEnds('a link that is dear to handle has steps of one batch too, and all in order', async (t, ...kinds) => {
  const { server, client, link } = await connected(t, ...kinds);
  const sizes = [200, 200, 40_000, 200, 200, 150_000, 200, 200, 200, 200];
  server.handle = (from) => {
    for (const [index, bytes] of sizes.entries()) from.send(numbered(index, bytes));
  };
  client.handle = () => spin(30);
  link.send(numbered(0));
  await until(() => client.steps.length === sizes.length, 'each was a step of its own');
  assert.deepEqual(client.numbers, [...sizes.keys()]);
  assert.deepEqual(
    client.batches.map((batch) => batch.length),
    sizes,
  );
});
