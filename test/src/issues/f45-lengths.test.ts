import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HEADER_BYTES, OFFSET, Type, writeHeader, writeU32 } from '@trunkline/proto';
import type { RawPeer } from '../support/dispatcher-world.js';
import type { MemoryLink } from '../support/memory-link.js';
import { FRONT, Parts } from './support.js';

/** Batches of one message with a 10-byte body whose lengths lie. */
function lies(): Uint8Array[] {
  const make = (change: (batch: Uint8Array) => void, type: number = Type.RESPONSE) => {
    const batch = new Uint8Array(HEADER_BYTES + 10);
    writeHeader(batch, 0, batch.length, { type, code: 100, line: 1, generation: 1 });
    change(batch);
    return batch;
  };
  const lengths = [0xffffffff, 0x80000000, 0x7fffffff, 43, 0, 1, 31, 2 ** 24];
  const batches = lengths.map((length) => make((batch) => writeU32(batch, 0, length)));
  for (const words of [0, 7, 11, 255]) {
    batches.push(
      make((batch) => {
        batch[OFFSET.words] = words;
      }),
    );
  }
  for (const meta of [11, 0xffff]) {
    batches.push(
      make((batch) => {
        batch[OFFSET.meta] = meta & 0xff;
        batch[OFFSET.meta + 1] = meta >>> 8;
      }),
    );
  }
  // a payload that says it is longer than it is, in every control message: protobuf length-delimited fields
  for (let type = 0; type < 64; type++) {
    batches.push(
      make((batch) => {
        batch.set([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x12, 0xff, 0xff, 0xff], HEADER_BYTES);
      }, type),
    );
  }
  for (let cut = 0; cut < HEADER_BYTES; cut++) batches.push(make(() => {}).subarray(0, cut));
  // BYE and RESET end a session by themselves, whoever sends them
  return batches.filter((batch) => batch[OFFSET.type] !== Type.BYE && batch[OFFSET.type] !== Type.RESET);
}

test('F45: lengths that lie are dropped and counted by a dispatcher, and running subscriptions see nothing', async () => {
  const parts = await Parts.start([{ code: 100 }]);
  let respond: (body: string) => void = () => {};
  parts.provider().provide(100, (subscription) => {
    respond = (body) => subscription.respond(body);
  });
  const got: string[] = [];
  const client = parts.client();
  client.subscribe(100, {}, (message) => void got.push(message.text()));
  await parts.settle();
  const bad: RawPeer = await parts.made.peer();
  const before = process.memoryUsage().arrayBuffers;
  for (const [index, batch] of lies().entries()) {
    bad.link.send(batch);
    await parts.settle();
    respond(`${index}`);
    await parts.settle();
    assert.equal(got.at(-1), `${index}`);
  }
  assert.equal(got.length, lies().length);
  assert.ok(process.memoryUsage().arrayBuffers - before < 4e6);
  const faults = [...parts.made.dispatcher.peers.values()].map(({ session }) =>
    Object.values(session.faults).reduce((sum, count) => sum + count, 0),
  );
  assert.ok(Math.max(...faults) > 40, `${faults}`);
});

test('F45: the same from a dispatcher is dropped and counted by an SDK, which goes on', async () => {
  const parts = await Parts.start([{ code: 100 }]);
  let respond: (body: string) => void = () => {};
  const provider = parts.provider();
  provider.provide(100, (subscription) => {
    respond = (body) => subscription.respond(body);
  });
  const client = parts.client();
  const got: string[] = [];
  client.subscribe(100, {}, (message) => void got.push(message.text()));
  await parts.settle();
  const ends = parts.made.network.links(FRONT).map((link) => (link as MemoryLink).peer!);
  for (const batch of lies()) for (const end of ends) end.send(batch);
  await parts.settle();
  respond('still here');
  await parts.settle();
  assert.deepEqual(got, ['still here']);
  assert.deepEqual([client.state, provider.state], ['connected', 'connected']);
  const { faults } = client.connection.session!;
  assert.ok(Object.values(faults).reduce((sum, count) => sum + count, 0) > 40);
});
