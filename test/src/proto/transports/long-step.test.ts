import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../../support/wait.js';
import { Record, transport } from './record.js';

test('what is dear to handle ends a step: timers run between such batches, however many wait', async (t) => {
  const zmq = transport(t);
  const server = new Record();
  const client = new Record();
  const listener = await zmq.listen('tcp://127.0.0.1:*', server);
  server.handle = () => {
    for (const from = performance.now(); performance.now() - from < 30; );
  };
  const link = zmq.dial(listener.address, client);
  await until(() => client.up, 'it is connected');
  for (let count = 0; count < 20; count++) link.send(new Uint8Array(200));
  await until(() => server.batches.length === 20, 'all arrived');
  await until(() => server.steps.length === 20, 'each was a step of its own');
  assert.ok(server.steps.every((batches) => batches === 1));
});
