import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Dealer, Request, Router } from 'zeromq';
import { until } from '../../support/wait.js';
import { echo, folder, type Kind, numbered, Record, testKinds, transport } from './record.js';

/* Plain sockets of ZeroMQ's library at the other end. */

const MAX = 16 * 1024 * 1024;
const lengths = [0, 1, 255, 256, 65_535, 65_536, 1024 * 1024, MAX];

/** Bytes by which a batch can be told from another and its places from each other. */
function patterned(length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  for (let at = 0; at < length; at++) bytes[at] = (at * 7 + (at >>> 8) + length) & 255;
  return bytes;
}

async function places(t: TestContext): Promise<string[]> {
  return ['tcp://127.0.0.1:0', `ipc://${join(await folder(t), 'main')}`];
}

async function listen(t: TestContext, kind: Kind, place: string) {
  const server = new Record();
  server.handle = echo;
  const made = transport(t, kind);
  const { address } = await made.listen(place, server);
  return { server, made, address };
}

function closing<S extends { close(): void }>(t: TestContext, socket: S): S {
  t.after(() => socket.close());
  return socket;
}

testKinds('a Dealer gets back what it sends, of every length, over tcp and ipc', async (t, kind) => {
  for (const place of await places(t)) {
    const { address } = await listen(t, kind, place);
    const dealer = closing(t, new Dealer({ linger: 0 }));
    dealer.connect(address);
    for (const length of lengths) {
      const sent = patterned(length);
      await dealer.send(sent);
      const answer = await dealer.receive();
      assert.equal(answer.length, 1);
      assert.ok(answer[0]!.equals(sent), `${length} bytes at ${place}`);
    }
  }
});

testKinds('a Router is dialled and gets back what it sends, of every length, over tcp and ipc', async (t, kind) => {
  for (const place of await places(t)) {
    const router = closing(t, new Router({ linger: 0 }));
    await router.bind(place.replace(':0', ':*'));
    const client = new Record();
    client.handle = echo;
    const link = transport(t, kind).dial(router.lastEndpoint!, client);
    await until(() => client.up, 'the link is up');
    link.send(numbered(1));
    const [id] = await router.receive();
    for (const length of lengths) {
      const sent = patterned(length);
      await router.send([id!, sent]);
      const answer = await router.receive();
      assert.equal(answer.length, 2);
      assert.ok(answer[1]!.equals(sent), `${length} bytes at ${place}`);
    }
  }
});

testKinds('a Dealer that heartbeats stays, and a Dealer may be dialled', async (t, kind) => {
  const dealer = closing(t, new Dealer({ linger: 0, heartbeatInterval: 5, heartbeatTimeout: 1000 }));
  await dealer.bind('tcp://127.0.0.1:*');
  const client = new Record();
  client.handle = echo;
  transport(t, kind).dial(dealer.lastEndpoint!, client);
  await until(() => client.up, 'the link is up');
  for (let round = 0; round < 20; round++) {
    await dealer.send(numbered(round));
    assert.equal((await dealer.receive())[0]!.readUInt32LE(), round);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  assert.deepEqual(client.told, ['up']);
});

testKinds('a Router may dial a listener, by a name of its own for it', async (t, kind) => {
  const { address } = await listen(t, kind, 'tcp://127.0.0.1:0');
  const router = closing(t, new Router({ linger: 0, mandatory: true }));
  router.connect(address, { routingId: 'main' });
  await until(() => router.send(['main', numbered(5)]).then(...outcome), 'it is connected');
  const [id, batch] = await router.receive();
  assert.deepEqual([String(id), batch!.readUInt32LE()], ['main', 5]);
});

const outcome = [() => true, () => false] as const;

testKinds(
  'a Request, whose messages have an empty frame before them, is no peer and disturbs none',
  async (t, kind) => {
    const { server, made, address } = await listen(t, kind, 'tcp://127.0.0.1:0');
    const request = closing(t, new Request({ linger: 0 }));
    request.connect(address);
    await request.send('hello');
    await until(() => made.counters.droppedFrames === 1, 'its message is counted');
    const dealer = closing(t, new Dealer({ linger: 0 }));
    dealer.connect(address);
    await dealer.send('hello');
    assert.equal(String((await dealer.receive())[0]), 'hello');
    assert.deepEqual([server.links.length, made.counters.refusedHandshakes], [1, 0]);
  },
);

testKinds('messages with another number of frames are dropped and counted', async (t, kind) => {
  const zmq = transport(t, kind);
  const server = new Record();
  const listener = await zmq.listen('tcp://127.0.0.1:0', server);
  const dealer = closing(t, new Dealer({ linger: 0 }));
  dealer.connect(listener.address);
  await dealer.send(['', 'a']);
  await dealer.send(['a', 'b']);
  await dealer.send(Array(20).fill('x'));
  await dealer.send('');
  await dealer.send('good');
  await until(() => server.batches.length === 2, 'the single frames are here');
  assert.deepEqual(
    server.batches.map((batch) => Buffer.from(batch).toString()),
    ['', 'good'],
  );
  assert.equal(zmq.counters.droppedFrames, 3);
  assert.equal(server.links.length, 1);
});

testKinds('messages of several frames from a dialled Router are dropped and counted', async (t, kind) => {
  const router = closing(t, new Router({ linger: 0 }));
  await router.bind('tcp://127.0.0.1:*');
  const client = new Record();
  const dialling = transport(t, kind);
  const link = dialling.dial(router.lastEndpoint!, client);
  await until(() => client.up, 'the link is up');
  link.send(numbered(1));
  const [id] = await router.receive();
  await router.send([id!, '', 'a']);
  await router.send([id!, 'good']);
  await until(() => client.batches.length === 1, 'the single frame is here');
  assert.equal(Buffer.from(client.batches[0]!).toString(), 'good');
  assert.equal(dialling.counters.droppedFrames, 1);
});

testKinds('routing ids chosen by clients are bytes: none collapses into another', async (t, kind) => {
  const { server, address } = await listen(t, kind, 'tcp://127.0.0.1:0');
  const ids = [Buffer.from([0xff, 0xfe]), Buffer.from([0xff, 0xfd]), Buffer.from('7'), Buffer.from([0xef, 0xbf, 0xbd])];
  const dealers = ids.map((id) => {
    const dealer = closing(t, new Dealer({ linger: 0, routingId: id as unknown as string }));
    dealer.connect(address);
    return dealer;
  });
  for (const [index, dealer] of dealers.entries()) {
    await dealer.send(numbered(index));
    const [answer] = await dealer.receive();
    assert.equal(answer!.readUInt32LE(), index);
  }
  assert.equal(server.links.length, ids.length);
});

testKinds('F34: a client with a fixed routing id that comes back works at once', async (t, kind) => {
  const { address } = await listen(t, kind, 'tcp://127.0.0.1:0');
  for (let round = 0; round < 5; round++) {
    const dealer = new Dealer({ linger: 0, routingId: 'fixed' });
    dealer.connect(address);
    await dealer.send(numbered(round));
    assert.equal((await dealer.receive())[0]!.readUInt32LE(), round);
    dealer.close();
  }
});

test('F34: two that live with one routing id are two links, and neither takes the place of the other [zmtp]', async (t) => {
  const { server, address } = await listen(t, 'zmtp', 'tcp://127.0.0.1:0');
  const dealers = [1, 2].map(() => closing(t, new Dealer({ linger: 0, routingId: 'same' })));
  for (const dealer of dealers) dealer.connect(address);
  for (let round = 0; round < 3; round++) {
    for (const [index, dealer] of dealers.entries()) {
      await dealer.send(numbered(10 * round + index));
      assert.equal((await dealer.receive())[0]!.readUInt32LE(), 10 * round + index);
    }
  }
  assert.deepEqual([server.links.length, server.told], [2, []]);
});
