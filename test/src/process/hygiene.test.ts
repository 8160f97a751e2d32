// F26, F28, F37: what the SDKs leave behind in a process.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { until } from '../support/wait.js';
import { freePort, World } from './fixtures/world.js';

function run(script: string, args: string[]): { child: ChildProcess; output: () => string } {
  const { NODE_V8_COVERAGE: _, ...env } = process.env;
  const file = fileURLToPath(new URL(`fixtures/${script}`, import.meta.url));
  const child = spawn(process.execPath, ['--unhandled-rejections=strict', file, ...args], { env });
  process.once('exit', () => child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  return { child, output: () => output };
}

/** It ends by itself, with code 0. */
async function endsByItself(script: string, args: string[]): Promise<string> {
  const { child, output } = run(script, args);
  await until(() => child.exitCode !== null || child.signalCode !== null, `it ends: ${args}`);
  assert.deepEqual([child.exitCode, child.signalCode], [0, null], `${args}: ${output()}`);
  return output();
}

test('nothing keeps a process alive whose client for a dead address is closed (F28)', async () => {
  const dead = `tcp://127.0.0.1:${await freePort()}`;
  const ways = ['at once', 'after a while', 'a provider after a while', 'a bound provider'].map(
    (way) => `close ${way}`,
  );
  const outputs = await Promise.all(
    [...ways, 'give up connecting'].map((way) => endsByItself('client-process.js', [way, dead])),
  );
  assert.deepEqual(new Set(outputs), new Set(['done\n']));
});

test('nor one whose client had success, or whose worker was terminated with a client in it (F28, F37)', async () => {
  await using world = await World.start({ services: [{ code: '1-3' }] });
  const provider = await world.provider({ 1: { every: 20 } });
  assert.equal(await endsByItself('client-process.js', ['close after success', world.address]), 'done\n');
  assert.equal(await endsByItself('client-process.js', ['a worker that is terminated', world.address]), 'done\n');
  // the dispatcher dropped what the worker had
  await world.empty();
  await until(async () => (await world.sessions()).length === 1, 'only the provider is left');
  assert.equal((await provider.counts()).active, 0);
});

test('no promise is left rejected when the dispatcher is cut, whatever the client is doing (F26)', async () => {
  const rounds = 3;
  await using world = await World.start({ services: [{ code: '1-2' }] });
  await world.provider({ 1: { every: 10 }, 2: { final: 1 } });
  const { child, output } = run('cut-process.js', [world.address, String(rounds)]);
  for (let round = 1; round <= rounds; round++) {
    await until(() => output().includes(`connected ${round}\n`) || child.exitCode !== null, 'it is connected');
    assert.equal(child.exitCode, null, output());
    await world.restartDispatcher();
  }
  if (child.exitCode === null) await once(child, 'close');
  assert.equal(child.exitCode, 0, output());
  const { asked, settled, codes, idle } = JSON.parse(output().trim().split('\n').at(-1)!);
  assert.deepEqual([settled, idle], [asked, 'ended']);
  const known = ['CLOSED', 'DISCONNECTED', 'TIMEOUT'];
  assert.deepEqual(
    codes.filter((code: string) => !known.includes(code)),
    [],
  );
  assert.ok(codes.includes('DISCONNECTED') && codes.includes('CLOSED'), String(codes));
});
