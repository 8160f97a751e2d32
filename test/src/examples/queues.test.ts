import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runScript } from '../support/command.js';
import { until } from '../support/wait.js';

/** The example is busy for as long as it takes to start six processes. */
const LIMIT = 60_000;

test('the example of a shared disk queue survives kill -9 of its dispatcher', async (context) => {
  const script = runScript(context, ['examples/queues/share.mjs', '2000']);
  await until(() => script.ended !== undefined, 'the example ends', LIMIT);
  assert.equal(script.ended, 0, script.out + script.err);
  assert.match(script.out, /kill -9 of the dispatcher.*workers: \d+ \+ \d+ deliveries, 2000 messages of 2000/s);
  assert.match(script.out, /audit: \d+ deliveries, 2000 messages of 2000/s);
});

test('the example of a full disk shows refusals, acknowledgements and how publishing resumes', async (context) => {
  const script = runScript(context, ['examples/queues/full-disk.mjs']);
  await until(() => script.ended !== undefined, 'the example ends', LIMIT);
  if (script.ended === 2) {
    assert.match(script.err, /cannot be mounted here/);
    return;
  }
  assert.equal(script.ended, 0, script.out + script.err);
  assert.match(script.out, /refused: STORE_FULL.*acknowledgements confirmed.*resumed by itself.*nothing was lost/s);
});
