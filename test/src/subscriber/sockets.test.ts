import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import {
  encodeMessage,
  Flag,
  OFFSET,
  payload,
  readU32,
  type Session,
  SessionHost,
  TrunklineError,
  Type,
} from '@trunkline/proto';
import { nodeContext, openConnection } from '@trunkline/proto/connect';
import { ZmtpTransport } from '@trunkline/proto/zmtp';
import { connect } from '@trunkline/subscriber';
import { until } from '../support/wait.js';

const LOOPBACK = 'tcp://127.0.0.1:*';

/** Accepts every request, answers it with one final response that holds its params, and can be killed and reborn. */
async function listen(address = LOOPBACK, token = '') {
  const transport = new ZmtpTransport();
  const sessions: Session[] = [];
  const requests: number[] = [];
  const host = new SessionHost({
    context: nodeContext({ name: 'dispatcher' }),
    maxSessions: 100,
    authenticate: (hello) => (hello.token === token ? undefined : new TrunklineError('UNAUTHENTICATED')),
    events: {
      onOpen: (session) => void sessions.push(session),
      onControl: (session, type, batch, at) => {
        if (type !== Type.REQUEST) return;
        const code = readU32(batch, at + OFFSET.code);
        const { request, params } = payload.readPayload(payload.request, batch, at);
        const header = { code, line: request, generation: 1 };
        requests.push(request);
        session.send({ type: Type.ACCEPTED, ...header }, payload.accepted.encode({ request, status: 'live' }));
        if (code === 1) return;
        const answer = encodeMessage({ type: Type.RESPONSE, ...header, flags: Flag.FINAL, sequence: 1 }, params);
        session.sendData(answer, 0, answer.length, 1);
      },
      onData: (session, _batch, start, end) => session.consume(end - start),
      onCredit: () => {},
      onClosed: () => {},
    },
  });
  const listener = await transport.listen(address, host);
  const close = async (politely = true) => {
    if (politely) host.close();
    await transport.close();
    // stops what runs on timers; nobody hears it any more
    host.close();
  };
  return { address: listener.address, host, sessions, requests, close };
}

test('connect over ZeroMQ: request, subscribe, close', async () => {
  const dispatcher = await listen();
  await using client = await connect(dispatcher.address, { name: 'reader' });
  assert.equal(client.state, 'connected');
  const answer = await client.request(2001, { params: { id: 7 }, timeoutMs: 5000 });
  assert.deepEqual(answer.json(), { id: 7 });
  await using subscription = client.subscribe(1);
  await subscription.accepted();
  assert.equal(dispatcher.sessions[0]!.peer.name, 'reader');
  await subscription.unsubscribe();
  await client.close();
  await until(() => dispatcher.host.size === 0, 'the session is gone');
  await dispatcher.close();
});

test('connect rejects with a code, and leaves nothing', async () => {
  const dispatcher = await listen(LOOPBACK, 'secret');
  await assert.rejects(connect(dispatcher.address, { token: 'guess' }), { code: 'UNAUTHENTICATED' });
  const client = await connect(['tcp://127.0.0.1:1', dispatcher.address], { token: 'secret', attemptMs: 50 });
  await client.close();
  await dispatcher.close();
  const controller = new AbortController();
  const waiting = connect('tcp://127.0.0.1:1', { signal: controller.signal });
  controller.abort();
  await assert.rejects(waiting, { code: 'ABORTED' });
  await assert.rejects(connect('tcp://127.0.0.1:1', { signal: controller.signal }), { code: 'ABORTED' });
  for (const target of ['nonsense', 'tcp://127.0.0.1:70000', [], [5 as never]]) {
    await assert.rejects(connect(target), { code: 'ADDRESS_INVALID' });
  }
});

test('rule 13: connect shares the connection of another role', async () => {
  const dispatcher = await listen();
  const connection = openConnection(dispatcher.address);
  const client = await connect(connection);
  assert.equal(client.connection, connection);
  await assert.rejects(connect(connection), { code: 'HANDLER_EXISTS' });
  assert.equal((await client.request(2, { params: 1 })).json(), 1);
  await client.close();
  assert.equal(connection.state, 'closed');
  await dispatcher.close();
});

/** Runs a module of its own that must end by itself with nothing said but `expected`. */
async function run(script: string, expected: string): Promise<void> {
  const sdk = pathToFileURL(createRequire(import.meta.url).resolve('@trunkline/subscriber')).href;
  const source = `const { connect } = await import(${JSON.stringify(sdk)});\n${script}`;
  const child = spawn(process.execPath, ['--unhandled-rejections=strict', '--input-type=module', '-e', source]);
  const output: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => output.push(String(text)));
  const [status] = await once(child, 'close');
  assert.deepEqual([status, output.join('')], [0, expected]);
}

test('F28: nothing that was closed keeps the process alive', async () => {
  const dispatcher = await listen();
  await run(
    `
    const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    const dead = async (ms) => {
      const controller = new AbortController();
      const waiting = connect('tcp://127.0.0.1:1', { signal: controller.signal }).catch((error) => error.code);
      if (ms > 0) await pause(ms);
      controller.abort();
      return waiting;
    };
    const client = await connect(${JSON.stringify(dispatcher.address)});
    client.subscribe(1);
    await client.request(2, {});
    const other = await connect(${JSON.stringify(dispatcher.address)});
    await Promise.all([other.close(), other.close(), client.close()]);
    console.log(await dead(0), await dead(50));
    `,
    'ABORTED ABORTED\n',
  );
  await dispatcher.close();
});

test('F26: cut during subscribe, request, unsubscribe, send and close, nothing is rejected behind the back', async () => {
  let dispatcher = await listen();
  const { address } = dispatcher;
  const cutting = (async () => {
    for (let round = 0; round < 6; round++) {
      const { requests } = dispatcher;
      await until(() => requests.length > 0, 'somebody asked', 20_000);
      await dispatcher.close(round % 2 === 0);
      dispatcher = await listen(address);
    }
  })();
  await run(
    `
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const client = await connect(${JSON.stringify(address)}, { log });
    let connected = 1;
    client.on('state', (state) => { if (state === 'connected') connected++; });
    const codes = new Set();
    const note = (error) => codes.add(error.code);
    while (connected < 7) {
      const subscription = client.subscribe(1);
      client.subscribe(1, {}, () => {}).unsubscribe();
      client.request(2, { timeoutMs: 20 }).catch(note);
      client.send(128, 1, 'x').catch(note);
      await new Promise((resolve) => setTimeout(resolve, 5));
      await subscription.unsubscribe();
    }
    client.request(1, {}).catch(note);
    client.subscribe(1);
    await client.close();
    await client.close();
    const known = ['TIMEOUT', 'DISCONNECTED', 'CLOSED'];
    console.log([...codes].every((code) => known.includes(code)), codes.has('DISCONNECTED'), codes.has('CLOSED'));
    `,
    'true true true\n',
  );
  await cutting;
  await dispatcher.close();
});
