import assert from 'node:assert/strict';
import { test } from 'node:test';
import { QUEUE, queueParts, settled, stored } from './bench.js';

test('a handler that asks a service over the same client gets its answer, however much of the queue waits', async () => {
  const parts = await queueParts({}, [{ code: 1 }]);
  const provider = parts.provider();
  provider.provide(1, ({ params }) => ({ asked: params }));
  const client = parts.client();
  const body = 'x'.repeat(64 * 1024);
  // half as much again as the credit of a session
  await settled(
    parts,
    provider.publishMany(
      QUEUE,
      Array.from({ length: 96 }, () => ({ body })),
    ),
  );
  const answers: unknown[] = [];
  const consumption = client.consume(QUEUE, { group: 'g' }, async (message) => {
    const answer = await client.request(1, { params: message.sequence });
    answers.push((answer.json() as { asked: number }).asked);
  });
  consumption.on('error', ({ code }) => answers.push(code));
  for (let round = 0; round < 40; round++) await stored(parts);
  assert.deepEqual(
    answers,
    Array.from({ length: 96 }, (_, index) => index + 1),
  );
});
