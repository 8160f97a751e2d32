import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { type Session, SessionHost, TrunklineError, Type } from '@trunkline/proto';
import { nodeContext, openConnection } from '@trunkline/proto/connect';
import { ZmtpTransport } from '@trunkline/proto/zmtp';
import { bind, connect, type Provider } from '@trunkline/publisher';

const LOOPBACK = 'tcp://127.0.0.1:*';

/** Accepts, and lets a test see sessions and responses. */
async function listen() {
  const transport = new ZmtpTransport();
  const responses: string[] = [];
  const sessions: Session[] = [];
  let heard: () => void = () => {};
  const host = new SessionHost({
    context: nodeContext({ name: 'dispatcher' }),
    maxSessions: 10,
    events: {
      onOpen: (session) => void sessions.push(session),
      onControl: (session, type) => {
        if (type === Type.OFFER) session.send({ type: Type.REQUEST, code: 1, line: 1, generation: 1 });
      },
      onData: (session, batch, start, end) => {
        session.consume(end - start);
        responses.push(new TextDecoder().decode(batch.subarray(start + 32, end)));
        heard();
      },
      onCredit: () => {},
      onClosed: () => heard(),
    },
  });
  const { address } = await transport.listen(LOOPBACK, host);
  const until = async (condition: () => boolean) => {
    while (!condition()) {
      await new Promise<void>((resolve) => {
        heard = resolve;
      });
    }
  };
  const close = async () => {
    host.close();
    await transport.close();
  };
  return { address, host, responses, sessions, until, close };
}

test('a provider dials in over ZeroMQ, answers, and leaves', async () => {
  const dispatcher = await listen();
  const provider: Provider = await connect(dispatcher.address, { name: 'p' });
  let stopped = 0;
  provider.provide(1, (subscription) => {
    subscription.respond('hello');
    return () => stopped++;
  });
  await dispatcher.until(() => dispatcher.responses.length > 0);
  assert.deepEqual([dispatcher.responses, dispatcher.sessions[0]!.peer.name], [['hello'], 'p']);
  await provider.close();
  await dispatcher.until(() => dispatcher.host.size === 0);
  assert.equal(stopped, 1);
  await dispatcher.close();
});

test('connect gives up when it is told to, and names what is wrong with an address', async () => {
  const controller = new AbortController();
  const waiting = connect('tcp://127.0.0.1:1', { signal: controller.signal });
  controller.abort();
  await assert.rejects(waiting, { code: 'ABORTED' });
  for (const target of ['nonsense', 'tcp://127.0.0.1:70000', [], [5 as never]]) {
    await assert.rejects(connect(target), { code: 'ADDRESS_INVALID' });
  }
});

test('a bound provider tells its address and checks credentials', async () => {
  await using provider = await bind(LOOPBACK, { token: 'secret' });
  assert.match(provider.address!, /^tcp:\/\/127\.0\.0\.1:[1-9]/);
  const stranger = openConnection(provider.address!, { token: 'guess' });
  await assert.rejects(stranger.ready(), { code: 'UNAUTHENTICATED' });
  const dispatcher = openConnection(provider.address!, { token: 'secret' });
  await dispatcher.ready();
  assert.equal(provider.state, 'connected');
  await assert.rejects(
    bind(provider.address!),
    (error) => error instanceof TrunklineError && error.code === 'ADDRESS_IN_USE',
  );
  await assert.rejects(bind(5 as never), { code: 'ADDRESS_INVALID' });
  await assert.rejects(bind(LOOPBACK, { maxSessions: 0 }), { code: 'OPTION_INVALID' });
  await dispatcher.close();
});

test('one connection may have a provider and others (rule 13)', async () => {
  const dispatcher = await listen();
  const connection = openConnection(dispatcher.address);
  const provider = await connect(connection);
  assert.equal(provider.connection, connection);
  await assert.rejects(connect(connection), { code: 'HANDLER_EXISTS' });
  await provider.close();
  await dispatcher.close();
});

test('a closed provider lets the process end by itself (F28)', async () => {
  const dispatcher = await listen();
  const sdk = pathToFileURL(createRequire(import.meta.url).resolve('@trunkline/publisher')).href;
  const script = `
    const { connect, bind } = await import(${JSON.stringify(sdk)});
    const live = await connect(${JSON.stringify(dispatcher.address)});
    live.provide(1, () => {});
    const bound = await bind('tcp://127.0.0.1:*');
    const dead = new AbortController();
    const never = connect('tcp://127.0.0.1:1', { signal: dead.signal }).catch((error) => error.code);
    await Promise.all([live.close(), bound.close()]);
    dead.abort();
    console.log(await never);
  `;
  const child = spawn(process.execPath, ['--unhandled-rejections=strict', '--input-type=module', '-e', script]);
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (text) => {
      output += text;
    });
  const [status] = await once(child, 'close');
  assert.deepEqual([status, output], [0, 'ABORTED\n']);
  await dispatcher.close();
});
