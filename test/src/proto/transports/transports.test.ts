import assert from 'node:assert/strict';
import { until } from '../../support/wait.js';
import { connected, echo, numbered, Record, testEnds, transport } from './record.js';

for (const bytes of [8, 128, 129, 5000, 17_000]) {
  testEnds(
    `F31: a thousand batches of ${bytes} bytes sent in one tick arrive in order, both ways`,
    async (t, ...kinds) => {
      const { server, client, link } = await connected(t, ...kinds, { handle: echo });
      for (let i = 0; i < 1000; i++) link.send(numbered(i, bytes));
      await until(() => client.batches.length === 1000, 'all came back');
      assert.deepEqual(client.numbers, [...Array(1000).keys()]);
      assert.deepEqual(server.numbers, [...Array(1000).keys()]);
      assert.ok(client.batches.every((batch) => batch.length === bytes));
      assert.equal(server.links.length, 1);
      assert.deepEqual(client.told, ['up']);
    },
  );
}

testEnds('batches of every length arrive whole, in order, both ways', async (t, ...kinds) => {
  const { client, link } = await connected(t, ...kinds, { handle: echo });
  const lengths = [0, 1, 254, 255, 256, 257, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537, 1_048_576, 0, 3];
  const sent = lengths.map((length, index) =>
    new Uint8Array(length).map((_, at) => (at * 31 + (at >> 8) + index) & 255),
  );
  for (const batch of sent) link.send(batch);
  await until(() => client.batches.length === sent.length, 'all came back');
  for (const [index, batch] of client.batches.entries())
    assert.ok(Buffer.compare(batch, sent[index]!) === 0, `${index}`);
});

testEnds('receiving goes in bounded steps, each with its end', async (t, ...kinds) => {
  const { server, link } = await connected(t, ...kinds, { listening: { stepBatches: 10 } });
  for (let i = 0; i < 500; i++) link.send(numbered(i));
  await until(() => server.steps.reduce((a, b) => a + b, 0) === 500, 'all arrived');
  assert.ok(Math.max(...server.steps) <= 10);
  assert.ok(server.steps.length >= 50);
});

testEnds('a step is bounded in bytes too, at both ends', async (t, ...kinds) => {
  const bounds = { stepBytes: 1000 };
  const { server, client, link } = await connected(t, ...kinds, { listening: bounds, dialling: bounds, handle: echo });
  for (let i = 0; i < 100; i++) link.send(numbered(i, 400));
  for (const { steps } of [server, client]) {
    await until(() => steps.reduce((a, b) => a + b, 0) === 100, 'all arrived');
    assert.ok(Math.max(...steps) <= 3);
  }
});

testEnds('a receiver that throws is counted and disturbs nothing', async (t, ...kinds) => {
  const { listening, client, link } = await connected(t, ...kinds, {
    handle: (from, batch) => {
      if (batch.length === 9) throw new Error('broken receiver');
      from.send(batch);
    },
  });
  link.send(numbered(1));
  link.send(numbered(2, 9));
  link.send(numbered(3));
  await until(() => client.batches.length === 2, 'the others came back');
  assert.deepEqual(client.numbers, [1, 3]);
  assert.equal(listening.counters.faults, 1);
});

testEnds('a received batch is no Buffer: what is sliced out of it is a copy', async (t, ...kinds) => {
  const slices: Uint8Array[] = [];
  const check = (batch: Uint8Array) => {
    const slice = batch.slice(0, 4);
    slice.fill(0xee);
    slices.push(slice);
    assert.equal(Object.getPrototypeOf(batch), Uint8Array.prototype);
    assert.notEqual(batch[0], 0xee);
  };
  const { listening, dialling, client, link } = await connected(t, ...kinds, {
    handle: (from, batch) => {
      check(batch);
      from.send(batch);
    },
  });
  client.handle = (_link, batch) => check(batch);
  for (const bytes of [64, 5000, 200_000]) link.send(numbered(1, bytes));
  await until(() => slices.length === 6, 'all were checked, both ways');
  assert.deepEqual([listening.counters.faults, dialling.counters.faults], [0, 0]);
});

testEnds(
  'received bytes belong to the receiver: kept and written in place, they change nothing else',
  async (t, ...kinds) => {
    const { server, link } = await connected(t, ...kinds);
    const sizes = [0, 1, 32, 33, 100, 128, 129, 500, 4000, 9000, 70_000];
    const rounds = 20;
    server.handle = (_link, batch) => batch.fill(server.batches.length % 251);
    for (let round = 0; round < rounds; round++) for (const size of sizes) link.send(new Uint8Array(size).fill(255));
    await until(() => server.batches.length === rounds * sizes.length, 'all arrived');
    for (const [index, batch] of server.batches.entries()) {
      assert.equal(batch.length, sizes[index % sizes.length]);
      assert.ok(batch.every((byte) => byte === (index + 1) % 251));
    }
  },
);

testEnds('batches of 16 MiB go both ways', async (t, ...kinds) => {
  const { client, link } = await connected(t, ...kinds, { handle: echo });
  for (let i = 0; i < 3; i++) link.send(numbered(i, 16 * 1024 * 1024));
  await until(() => client.batches.length === 3, 'all came back');
  assert.deepEqual(client.numbers, [0, 1, 2]);
  assert.ok(client.batches.every((batch) => batch.length === 16 * 1024 * 1024));
});

testEnds('a forgotten peer that speaks again is a new link', async (t, ...kinds) => {
  const { listening, server, link } = await connected(t, ...kinds, { handle: (from) => from.close() });
  link.send(numbered(1));
  link.send(numbered(2));
  await until(() => server.links.length === 2, 'two links were made');
  server.links[0]!.send(numbered(3));
  server.links[1]!.close();
  server.links[0]!.close();
  assert.equal(listening.counters.droppedSends, 1);
  assert.deepEqual(server.told, []);
});

testEnds('what a closing listener still sent is read before the link is told down', async (t, ...kinds) => {
  const { server, client, listener, link } = await connected(t, ...kinds);
  server.handle = (from) => {
    for (let i = 0; i < 500; i++) from.send(numbered(i, 2000));
    void listener.close();
  };
  let atDown = -1;
  client.onDown = () => {
    atDown = client.batches.length;
  };
  link.send(numbered(1));
  await until(() => atDown >= 0, 'the link is down');
  assert.equal(atDown, 500);
});

testEnds('what a link sent before its close arrives', async (t, listens, dials) => {
  const server = new Record();
  const listener = await transport(t, listens).listen('tcp://127.0.0.1:0', server);
  for (let round = 1; round <= 5; round++) {
    const client = new Record();
    const link = transport(t, dials).dial(listener.address, client);
    await until(() => client.up, 'the link is up');
    for (let i = 0; i < 500; i++) link.send(numbered(i, 2000));
    link.close();
    await until(() => server.batches.length === 500 * round, 'all arrived');
  }
});

testEnds('close waits for what was sent to leave, and not longer than the linger time', async (t, ...kinds) => {
  const bytes = 8 * 1024 * 1024;
  const { dialling, server, client, link } = await connected(t, ...kinds, { dialling: { lingerMs: 5000 } });
  link.send(numbered(1, bytes));
  await dialling.close();
  await until(() => server.batches.length === 1, 'it arrived');
  assert.equal(server.batches[0]!.length, bytes);
  assert.deepEqual(client.told, ['up']);
});

testEnds('a link that is dialled before its peer is there comes up with it', async (t, listens, dials) => {
  const listening = transport(t, listens);
  const probe = await listening.listen('tcp://127.0.0.1:0', new Record());
  const { address } = probe;
  await probe.close();
  const client = new Record();
  const dialling = transport(t, dials, { reconnectMs: 5, reconnectMaxMs: 20 });
  const link = dialling.dial(address, client);
  link.send(numbered(1));
  const server = new Record();
  await listening.listen(address, server);
  await until(() => client.up, 'the link is up');
  link.send(numbered(2));
  await until(() => server.batches.length === 1, 'the batch is here');
  assert.deepEqual([server.numbers, client.told], [[2], ['up']]);
  assert.equal(dialling.counters.droppedSends, 1);
});
