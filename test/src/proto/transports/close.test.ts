import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { until } from '../../support/wait.js';
import {
  classNames,
  connected,
  echo,
  folder,
  type Kind,
  numbered,
  Record,
  testEnds,
  testKinds,
  transport,
} from './record.js';

testKinds('F27: close resolves in every state, also twice at once', async (t, kind) => {
  const server = new Record();
  const { address } = await transport(t, kind).listen('tcp://127.0.0.1:0', server);
  const silent = createServer(() => {});
  silent.listen(0, '127.0.0.1');
  await until(() => silent.listening, 'the silent one listens');
  t.after(() => silent.close());
  const silentAddress = `tcp://127.0.0.1:${(silent.address() as { port: number }).port}`;
  const place = await folder(t);

  await transport(t, kind).close();
  for (const target of [
    address,
    silentAddress,
    'tcp://127.0.0.1:1',
    'tcp://no-such-host.invalid:1',
    `ipc://${place}/x`,
  ]) {
    const closing = transport(t, kind);
    const client = new Record();
    const link = closing.dial(target, client);
    link.send(numbered(1));
    await Promise.all([closing.close(), closing.close()]);
    await closing.close();
    link.send(numbered(2));
    link.close();
    assert.deepEqual(client.told, [], target);
    assert.throws(() => closing.dial(target, client), { code: 'CLOSED' });
    await assert.rejects(closing.listen('tcp://127.0.0.1:0', server), { code: 'CLOSED' });
  }
});

testKinds('close while listening begins: the call is refused and nothing is left', async (t, kind) => {
  const place = await folder(t);
  for (const address of ['tcp://127.0.0.1:0', 'tcp://localhost:0', `ipc://${join(place, 'main')}`]) {
    const closing = transport(t, kind);
    const outcome = assert.rejects(closing.listen(address, new Record()), { code: 'CLOSED' });
    await closing.close();
    await outcome;
  }
  await transport(t, kind).listen(`ipc://${join(place, 'main')}`, new Record());
});

testKinds('close at any moment of binding leaves nobody who listens', async (t, kind) => {
  const address = await freeAddress(t, kind);
  for (let turns = 0; turns < 8; turns++) {
    const closing = transport(t, kind);
    const outcome = closing.listen(address, new Record()).catch((error) => assert.equal(error.code, 'CLOSED'));
    for (let turn = 0; turn < turns; turn++) await nextTurn();
    await closing.close();
    await outcome;
    const again = transport(t, kind);
    await again.listen(address, new Record());
    await again.close();
  }
});

testEnds('no event comes after close, and sends after it are dropped', async (t, ...kinds) => {
  const { dialling, server, client, listener, link } = await connected(t, ...kinds, { handle: echo });
  client.handle = (from) => {
    from.close();
    from.close();
  };
  for (let i = 0; i < 100; i++) link.send(numbered(i));
  await until(() => client.batches.length > 0 && server.batches.length === 100, 'batches passed');
  await dialling.close();
  assert.equal(client.batches.length, 1);
  assert.deepEqual(client.told, ['up']);
  const [peer] = server.links;
  await listener.close();
  peer!.send(numbered(1));
  peer!.close();
  await listener.close();
  assert.deepEqual(
    server.told.filter((told) => told !== 'down: unreachable'),
    [],
  );
});

testKinds('an address is free again once its listener is closed', async (t, kind) => {
  const listening = transport(t, kind);
  let address = 'tcp://127.0.0.1:0';
  for (let round = 0; round < 10; round++) {
    const listener = await listening.listen(address, new Record());
    address = listener.address;
    await listener.close();
  }
});

const script = (kind: Kind, body: string) => `
  import { ${classNames[kind]} as Transport } from '@trunkline/proto/${kind}';
  const [address] = process.argv.slice(1);
  const events = { onBatch() {}, onUp() { up(); } };
  let up;
  const isUp = new Promise((resolve) => { up = resolve; });
  const transport = new Transport();
  ${body}`;

const endings: [string, string][] = [
  ['a link to nobody, closed at once', `transport.dial('tcp://127.0.0.1:1', events); await transport.close();`],
  [
    'a link to nobody, closed later',
    `transport.dial('tcp://127.0.0.1:1', events); setTimeout(() => transport.close(), 50);`,
  ],
  ['a link that was up', 'transport.dial(address, events); await isUp; await transport.close();'],
  ['one link closed by itself', 'const link = transport.dial(address, events); await isUp; link.close();'],
  ['a listener', `await transport.listen('tcp://127.0.0.1:0', events); await transport.close();`],
  ['nothing', ''],
];

function run(t: TestContext, kind: Kind, body: string, ...words: string[]) {
  const child = spawn(
    process.execPath,
    ['--unhandled-rejections=strict', '--input-type=module', '-e', script(kind, body), ...words],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  t.after(() => child.kill('SIGKILL'));
  return child;
}

testKinds('F28: a closed transport keeps no process alive', async (t, kind) => {
  const { address } = await transport(t, kind).listen('tcp://127.0.0.1:0', new Record());
  for (const [what, body] of endings) {
    const child = run(t, kind, body, address);
    const [code, signal] = await once(child, 'exit');
    assert.deepEqual([code, signal], [0, null], what);
  }
});

testKinds('F101: what was sent leaves even when the process ends right after close', async (t, kind) => {
  const server = new Record();
  const { address } = await transport(t, kind).listen('tcp://127.0.0.1:0', server);
  const child = run(
    t,
    kind,
    `const link = transport.dial(address, events); await isUp;
     for (let i = 0; i < 100; i++) link.send(new Uint8Array(10000));
     await transport.close(); process.exit(0);`,
    address,
  );
  await once(child, 'exit');
  await until(() => server.batches.length === 100, 'all arrived');
});

test('the routing ids of two processes do not begin at the same number', async (t) => {
  const body = `
    const listener = await transport.listen('tcp://127.0.0.1:0', {
      onBatch(link) { console.log(link.label.split('#')[1]); transport.close(); },
    });
    const link = transport.dial(listener.address, events);
    await isUp;
    link.send(new Uint8Array(1));`;
  const ids = await Promise.all(
    [1, 2, 3].map(async () => String((await once(run(t, 'zmq', body).stdout, 'data'))[0]).trim()),
  );
  for (const id of ids) assert.match(id, /^00[0-9a-f]{8}$/);
  assert.ok(new Set(ids).size > 1, ids.join());
});

testKinds('F37: a worker that is terminated with a link and a listener leaves the process alive', async (t, kind) => {
  const server = new Record();
  server.handle = echo;
  const listening = transport(t, kind);
  const { address } = await listening.listen('tcp://127.0.0.1:0', server);
  for (let round = 0; round < 3; round++) {
    const worker = new Worker(
      `const { parentPort, workerData } = require('node:worker_threads');
       import('@trunkline/proto/${kind}').then(async ({ ${classNames[kind]}: Transport }) => {
         const transport = new Transport();
         await transport.listen('tcp://127.0.0.1:0', { onBatch() {} });
         const link = transport.dial(workerData, {
           onUp() { link.send(new Uint8Array(1000)); },
           onBatch() { parentPort.postMessage('echo'); },
         });
       });`,
      { eval: true, workerData: address },
    );
    await once(worker, 'message');
    await worker.terminate();
    if (kind === 'zmq') await until(() => server.suspects > round, 'the listener heard that somebody left');
    const link = server.links[round]!;
    await until(() => {
      link.send(numbered(1));
      return server.told.length > round;
    }, 'the peer is gone');
    const client = new Record();
    const own = listening.dial(address, client);
    await until(() => client.up, 'the process goes on');
    own.close();
  }
});

testKinds('in a worker a link comes up, goes down, comes back and closes', async (t, kind) => {
  const address = await freeAddress(t, kind);
  const worker = new Worker(
    `const { parentPort, workerData } = require('node:worker_threads');
     import('@trunkline/proto/${kind}').then(({ ${classNames[kind]}: Transport }) => {
       const transport = new Transport({ reconnectMs: 5, reconnectMaxMs: 20 });
       const say = (text) => parentPort.postMessage(text);
       const link = transport.dial(workerData, {
         onUp() { say('up'); link.send(Buffer.from('hello')); },
         onDown(_link, reason) { say('down: ' + reason); },
         onBatch(_link, batch) { say(Buffer.from(batch).toString()); },
       });
       parentPort.once('message', () => transport.close().then(() => say('closed')));
     });`,
    { eval: true, workerData: address },
  );
  t.after(() => worker.terminate());
  const said: string[] = [];
  worker.on('message', (text) => said.push(text));
  for (let round = 1; round <= 2; round++) {
    const server = new Record();
    server.handle = echo;
    const peer = transport(t, kind);
    await peer.listen(address, server);
    await until(() => said.filter((text) => text === 'hello').length === round, 'the echo is there');
    await peer.close();
    await until(() => said.filter((text) => text.startsWith('down')).length === round, 'the link is down');
  }
  worker.postMessage('close');
  await once(worker, 'exit');
  assert.deepEqual(said, [...Array(2).fill(['up', 'hello', 'down: connection lost']).flat(), 'closed']);
});

async function freeAddress(t: TestContext, kind: Kind): Promise<string> {
  const listener = await transport(t, kind).listen('tcp://127.0.0.1:0', new Record());
  await listener.close();
  return listener.address;
}
