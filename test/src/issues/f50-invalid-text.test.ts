import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Flag, HEADER_BYTES, OFFSET, Type, writeHeader } from '@trunkline/proto';
import type { Provider, Subscription } from '@trunkline/publisher/core';
import { Parts, record } from './support.js';

const wrong = new Uint8Array([0xff, 0xfe]);

/** Puts a response on the provider's session whose meta or JSON body is no UTF-8. */
function respondWrong(provider: Provider, line: number, generation: number, where: 'key' | 'tag' | 'json'): void {
  const session = provider.connection!.session!;
  const meta = where === 'json' ? new Uint8Array(0) : Uint8Array.of(where === 'tag' ? 0x0a : 0x12, 2, ...wrong);
  const length = HEADER_BYTES + meta.length + wrong.length;
  const at = session.reserveData(length);
  const flags = where === 'json' ? Flag.JSON : 0;
  writeHeader(session.target, at, length, {
    type: Type.RESPONSE,
    code: 100,
    line,
    generation,
    flags,
    metaLength: meta.length,
  });
  session.target.set(meta, at + HEADER_BYTES);
  session.target.set(wrong, at + HEADER_BYTES + meta.length);
}

for (const where of ['key', 'tag', 'json'] as const) {
  test(`F50: text that is no UTF-8 (${where}) is one error event; the next items come, nobody reconnects`, async () => {
    const parts = await Parts.start([{ code: 100, keep: { lastPerKey: 10 } }]);
    let line = 0;
    const { tap } = parts.made.world;
    parts.made.world.tap = (from, batch) => {
      tap(from, batch);
      if (batch[OFFSET.type] === Type.REQUEST && from.startsWith('from')) {
        line = new DataView(batch.buffer).getUint32(OFFSET.line, true);
      }
    };
    const provider = parts.provider();
    let source: Subscription | undefined;
    provider.provide(100, (subscription) => {
      source = subscription;
    });
    const client = parts.client();
    const read = (message: { key: string; json(): unknown }) => [message.key, message.json()];
    const got: unknown[] = [];
    const subscription = client.subscribe(100, {}, (message) => void got.push(read(message)));
    const errors: string[] = [];
    subscription.on('error', ({ code }) => errors.push(code));
    const filtered = record(client.subscribe(100, { filter: 'key == "good" && body == 1' }));
    const latest = record(client.subscribe(100, { return: 'latest', rate: 1000 }));
    await parts.settle();
    source!.respond(1, { key: 'good' });
    respondWrong(provider, line, source!.generation, where);
    source!.respond(1, { key: 'good' });
    await parts.advance(10_000);
    assert.deepEqual(got, [
      ['good', 1],
      ['good', 1],
    ]);
    assert.equal(errors.length, 1);
    assert.ok(['META_INVALID', 'BODY_INVALID'].includes(errors[0]!), errors[0]);
    assert.deepEqual(filtered, ['live', '1', '1']);
    assert.ok(latest.includes('1'));
    // it is kept, too: a late joiner meets it once and goes on
    const late = record(client.subscribe(100));
    await parts.advance(10_000);
    assert.ok(late.includes('1'));
    assert.equal(parts.wire.filter(({ type }) => type === 'HELLO').length, 2);
  });
}
