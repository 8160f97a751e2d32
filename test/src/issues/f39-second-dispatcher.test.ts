import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { connect as connectProvider } from '@trunkline/publisher';
import { connect } from '@trunkline/subscriber';
import { folder, quiet, Real } from './real.js';

const cli = join(dirname(createRequire(import.meta.url).resolve('@trunkline/cli/package.json')), 'bin', 'trunkline.js');

for (const kind of ['ipc', 'tcp']) {
  test(`F39: a second dispatcher with the same ${kind} address ends with a clear text, the first goes on`, async (t) => {
    const listen = kind === 'ipc' ? [`ipc://${folder(t)}/front`] : ['tcp://127.0.0.1:0'];
    const real = await Real.start(t, [{ code: 100 }], { listen });
    if (kind === 'tcp') real.write({ listen: [real.address], services: [{ code: 100 }] });
    const provider = await connectProvider(real.address, quiet);
    provider.provide(100, () => 'answer');
    const client = await connect(real.address, quiet);
    const second = spawnSync(process.execPath, [cli, 'dispatcher', '--config', real.file], {
      encoding: 'utf8',
      timeout: 20_000,
    });
    assert.notEqual(second.status, 0);
    assert.notEqual(second.status, null);
    assert.match(second.stderr, /ADDRESS_IN_USE|listen/);
    assert.ok(second.stderr.includes(real.address), second.stderr);
    assert.equal((await client.request(100, { params: 1 })).text(), 'answer');
    const late = await connect(real.address, quiet);
    assert.equal((await late.request(100, { params: 2 })).text(), 'answer');
    await Promise.all([late.close(), client.close(), provider.close()]);
  });
}
