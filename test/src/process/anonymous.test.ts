// Routing ids are bytes that the dispatcher's socket chose: as text, 300 of them would collapse to half as many.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../support/wait.js';
import { watch } from './fixtures/watch.js';
import { World } from './fixtures/world.js';

const COUNT = 300;

test('300 subscribers without a name each get what they asked for, and nothing else', async () => {
  await using world = await World.start({ session: { heartbeat: '5s' }, services: [{ code: '1-2' }] });
  await world.provider({ 1: { final: 'answer' }, 2: { every: 200 } });
  const limits = { heartbeat: 5000 };
  const clients = await Promise.all(Array.from({ length: COUNT }, () => world.client({ name: '', limits })));
  const answers = await Promise.all(clients.map((client, n) => client.request(1, { params: { n } })));
  assert.deepEqual(
    answers.map((answer) => answer.json()),
    Array.from({ length: COUNT }, (_, n) => ({ final: 'answer', params: { n } })),
  );
  const seen = clients.map((client, n) => watch(client.subscribe(2, { params: n })));
  await until(() => seen.every(({ count }) => count >= 2), 'all have received');
  const params = seen.map(({ last }) => (last as { params: number }).params);
  assert.deepEqual(
    params,
    Array.from({ length: COUNT }, (_, n) => n),
  );
  for (const { accepted, disorder, holes } of seen) assert.deepEqual([accepted, disorder, holes], [1, 0, 0]);
  assert.equal((await world.sessions()).length, COUNT + 1);
  await Promise.all(clients.map((client) => client.close()));
  await world.empty();
});
