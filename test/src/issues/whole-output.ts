import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { connect as connectProvider } from '@trunkline/publisher';
import { connect } from '@trunkline/subscriber';
import { until } from '../support/wait.js';
import { quiet, Real } from './real.js';

const cli = join(dirname(createRequire(import.meta.url).resolve('@trunkline/cli/package.json')), 'bin', 'trunkline.js');

/** Runs the command with its output in a pipe that a slow reader has. */
export async function piped(...args: string[]): Promise<{ out: string; status: number }> {
  const quoted = [process.execPath, cli, ...args].map((word) => `'${word}'`).join(' ');
  const script = `{ { ${quoted} 2>&1; echo "status $?" >&3; } | { sleep 0.5; cat; }; } 3>&2`;
  const child = spawn('sh', ['-c', script], { stdio: ['ignore', 'pipe', 'pipe'], timeout: 60_000 });
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { out, status: Number(/status (\d+)/.exec(err)![1]) };
}

/** Makes so many streams and lists them through a pipe. */
export async function assertWholeList(t: TestContext, count: number): Promise<void> {
  const real = await Real.start(t, [{ code: 100, requestWindow: 10_000 }]);
  const provider = await connectProvider(real.address, quiet);
  provider.provide(100, () => {});
  const client = await connect(real.address, quiet);
  for (let params = 0; params < count; params++) client.subscribe(100, { params: { number: params } });
  await until(() => provider.subscriptions === count, 'all are there', 30_000);
  const { out, status } = await piped('streams', '--json', '--dispatcher', real.address);
  assert.equal(status, 0, out.slice(0, 200));
  const numbers = (JSON.parse(out) as { params: string }[]).map(({ params }) => JSON.parse(params).number);
  assert.equal(new Set(numbers).size, count);
  await Promise.all([client.close(), provider.close()]);
}
