import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { TrunklineError } from '@trunkline/proto';
import { connect as publish } from '@trunkline/publisher';
import { connect } from '@trunkline/subscriber';
import { RunningCommand } from '../../support/command.js';
import { logOf, temporaryFolder } from '../../support/daemon.js';

const QUEUE = 4001;
const binary = fileURLToPath(new URL('../../../../cli/bin/trunkline.js', import.meta.url));
/** Largest file, in blocks of 512 bytes: 24 MiB. */
const BLOCKS = 49_152;

test('a limit of file sizes refuses publishes; no signal ends the dispatcher, acknowledgements and live work go on', async (t) => {
  const file = join(temporaryFolder(t), 'trunkline.json');
  const queue = { code: QUEUE, kind: 'queue' };
  writeFileSync(file, JSON.stringify({ listen: ['tcp://127.0.0.1:*'], services: [queue], dataDirectory: 'data' }));
  const env = { ...process.env };
  delete env.NODE_TEST_CONTEXT;
  delete env.NODE_V8_COVERAGE;
  const shell = `ulimit -f ${BLOCKS}; exec "$0" "$@"`;
  const args = ['-c', shell, process.execPath, binary, 'dispatcher', '--config', file];
  const daemon = new RunningCommand(spawn('sh', args, { env, stdio: ['ignore', 'pipe', 'pipe'] }));
  t.after(() => (daemon.ended === undefined ? daemon.kill('SIGKILL') : undefined));
  await daemon.until(() => logOf(daemon).some(({ msg }) => msg === 'dispatcher started'), 'it has started');
  const address = logOf(daemon).find(({ msg }) => msg === 'listening')!.address!;
  await using provider = await publish(address);
  let stored = 0;
  let refusal: unknown;
  while (refusal === undefined && stored < 1000) {
    await provider.publish(QUEUE, 'x'.repeat(100_000)).then(
      () => stored++,
      (error: unknown) => {
        refusal = error;
      },
    );
  }
  assert.ok(refusal instanceof TrunklineError, `${stored} were stored`);
  assert.equal(refusal.code, 'STORE_FULL');
  assert.ok(stored > 50, `${stored} were stored`);
  await using client = await connect(address);
  let got = 0;
  const consumption = client.consume(QUEUE, { group: 'g', window: 16, ack: 'manual' }, async (message) => {
    await message.ack();
    got++;
  });
  await daemon.until(() => got === stored, 'everything is acknowledged');
  await consumption.close();
  assert.equal(daemon.ended, undefined);
  assert.equal(await daemon.kill('SIGTERM'), 0);
});
