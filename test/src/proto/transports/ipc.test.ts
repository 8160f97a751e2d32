import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, utimes, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { until } from '../../support/wait.js';
import { classNames, echo, folder, type Kind, numbered, Record, testEnds, testKinds, transport } from './record.js';

const child = (t: TestContext, kind: Kind, path: string) => {
  const code = `
    import { ${classNames[kind]} as Transport } from '@trunkline/proto/${kind}';
    const transport = new Transport();
    try {
      await transport.listen(process.argv[1], { onBatch() {} });
      console.log('listening');
    } catch (error) {
      console.log(error.code);
      await transport.close();
    }`;
  const started = spawn(process.execPath, ['--input-type=module', '-e', code, `ipc://${path}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => started.kill('SIGKILL'));
  const said = once(started.stdout, 'data').then(([data]) => String(data).trim());
  return { process: started, said };
};

async function assertEcho(t: TestContext, kind: Kind, path: string): Promise<void> {
  const client = new Record();
  const link = transport(t, kind, { reconnectMs: 5 }).dial(`ipc://${path}`, client);
  await until(() => client.up, 'the link is up');
  link.send(numbered(5));
  await until(() => client.batches.length === 1, 'the batch came back');
  link.close();
}

testKinds('ipc goes both ways, and close leaves no file', async (t, kind) => {
  const place = await folder(t);
  const path = join(place, 'main');
  const server = new Record();
  server.handle = echo;
  for (let round = 0; round < 3; round++) {
    const listener = await transport(t, kind).listen(`ipc://${path}`, server);
    assert.equal(listener.address, `ipc://${path}`);
    await assertEcho(t, kind, path);
    await listener.close();
    assert.deepEqual(await readdir(place), []);
  }
});

testKinds('F39: a path that somebody serves is refused, and the first goes on serving', async (t, kind) => {
  const path = join(await folder(t), 'main');
  const server = new Record();
  server.handle = echo;
  await transport(t, kind).listen(`ipc://${path}`, server);
  await assert.rejects(transport(t, kind).listen(`ipc://${path}`, new Record()), {
    code: 'ADDRESS_IN_USE',
    message: new RegExp(path),
  });
  assert.equal(await child(t, kind, path).said, 'ADDRESS_IN_USE');
  await assertEcho(t, kind, path);
});

testKinds('a socket of another program that answers is left alone', async (t, kind) => {
  const path = join(await folder(t), 'other');
  const other = createServer().listen(path);
  await once(other, 'listening');
  t.after(() => other.close());
  await assert.rejects(transport(t, kind).listen(`ipc://${path}`, new Record()), { code: 'ADDRESS_IN_USE' });
  assert.ok(existsSync(path));
});

testKinds('the socket of a killed process is taken over', async (t, kind) => {
  const path = join(await folder(t), 'main');
  const first = child(t, kind, path);
  assert.equal(await first.said, 'listening');
  first.process.kill('SIGKILL');
  await once(first.process, 'exit');
  assert.ok(existsSync(path));
  const server = new Record();
  server.handle = echo;
  await transport(t, kind).listen(`ipc://${path}`, server);
  await assertEcho(t, kind, path);
});

testKinds('of several that start at once on a stale socket exactly one listens', async (t, kind) => {
  const place = await folder(t);
  const path = join(place, 'main');
  const first = child(t, kind, path);
  assert.equal(await first.said, 'listening');
  first.process.kill('SIGKILL');
  await once(first.process, 'exit');
  const transports = Array.from({ length: 8 }, () => transport(t, kind));
  const results = await Promise.allSettled(transports.map((made) => made.listen(`ipc://${path}`, new Record())));
  assert.equal(results.filter((result) => result.status === 'fulfilled').length, 1);
  for (const result of results) if (result.status === 'rejected') assert.equal(result.reason.code, 'ADDRESS_IN_USE');
  assert.deepEqual(await readdir(place), ['main']);
});

testKinds(
  'a regular file, a folder in its place and a missing folder are clear errors; nothing is removed',
  async (t, kind) => {
    const place = await folder(t);
    const listening = transport(t, kind);
    const file = join(place, 'file');
    await writeFile(file, 'precious');
    await assert.rejects(listening.listen(`ipc://${file}`, new Record()), {
      code: 'ADDRESS_INVALID',
      message: /no socket/,
    });
    assert.equal(await readFile(file, 'utf8'), 'precious');
    await mkdir(join(place, 'sub'));
    await assert.rejects(listening.listen(`ipc://${place}/sub`, new Record()), { code: 'ADDRESS_INVALID' });
    await assert.rejects(listening.listen(`ipc://${place}/none/main`, new Record()), {
      code: 'ADDRESS_INVALID',
      message: /none does not exist/,
    });
    await assert.rejects(listening.listen(`ipc://${file}/main`, new Record()), {
      code: 'ADDRESS_INVALID',
      message: /folder/,
    });
    assert.deepEqual((await readdir(place)).sort(), ['file', 'sub']);
  },
);

testKinds('close does not remove what another one put in its place', async (t, kind) => {
  const place = await folder(t);
  const path = join(place, 'main');
  const listener = await transport(t, kind).listen(`ipc://${path}`, new Record());
  await rename(path, join(place, 'aside'));
  await writeFile(path, 'somebody else');
  await listener.close();
  assert.equal(await readFile(path, 'utf8'), 'somebody else');
});

testKinds('a lock that a dead process left behind does not stop a start', async (t, kind) => {
  const place = await folder(t);
  const path = join(place, 'main');
  await writeFile(`${path}.lock`, '');
  const past = new Date(Date.now() - 60_000);
  await utimes(`${path}.lock`, past, past);
  await transport(t, kind).listen(`ipc://${path}`, new Record());
  assert.deepEqual(await readdir(place), ['main']);
});

testKinds('a path of 107 bytes works', async (t, kind) => {
  const place = await folder(t);
  const path = `${place}/${'p'.repeat(106 - place.length)}`;
  assert.equal(Buffer.byteLength(path), 107);
  const server = new Record();
  server.handle = echo;
  await transport(t, kind).listen(`ipc://${path}`, server);
  await assertEcho(t, kind, path);
});

testEnds('a path of 107 bytes works whose last part has one letter', async (t, listens, dials) => {
  const place = await folder(t);
  const inner = `${place}/${'p'.repeat(104 - place.length)}`;
  await mkdir(inner);
  const path = `${inner}/a`;
  assert.equal(Buffer.byteLength(path), 107);
  const server = new Record();
  server.handle = echo;
  const listener = await transport(t, listens).listen(`ipc://${path}`, server);
  assert.deepEqual(await readdir(inner), ['a']);
  await assertEcho(t, dials, path);
  await listener.close();
  assert.deepEqual(await readdir(inner), []);
});
