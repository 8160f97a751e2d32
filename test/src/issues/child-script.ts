import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const resolve = (name: string) => JSON.stringify(pathToFileURL(createRequire(import.meta.url).resolve(name)).href);

/** Runs a module that must end by itself, without process.exit. */
export async function ends(body: string, address: string): Promise<void> {
  const source = `
    const { connect, Client } = await import(${resolve('@trunkline/subscriber')});
    const { connect: connectProvider, bind, Provider } = await import(${resolve('@trunkline/publisher')});
    const { openConnection } = await import(${resolve('@trunkline/proto/connect')});
    const address = ${JSON.stringify(address)};
    const pause = (ms) => new Promise((done) => setTimeout(done, ms));
    ${body}`;
  const child = spawn(process.execPath, ['--unhandled-rejections=strict', '--input-type=module', '-e', source], {
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: 20_000,
  });
  assert.deepEqual(await once(child, 'exit'), [0, null], body);
}
