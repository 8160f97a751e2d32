import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeMeta, Flag, HEADER_BYTES, Type, writeHeader } from '@trunkline/proto';
import type { QueueMessage } from '@trunkline/subscriber/core';
import { DEAD } from '../queues/bench.js';
import { items, QUEUE, queueParts, settled, stored } from './queue-support.js';

const utf8 = new TextEncoder();
const broken = [Uint8Array.of(0xff, 0xfe), utf8.encode('{"n": '), utf8.encode('{}}')];

/** Publishes bodies that say they are JSON, as no SDK does. */
async function publishBroken(parts: Awaited<ReturnType<typeof queueParts>>): Promise<void> {
  const peer = await parts.made.peer();
  for (const [index, body] of broken.entries()) {
    const meta = encodeMeta({ key: `broken ${index}` });
    const length = HEADER_BYTES + meta.length + body.length;
    const message = new Uint8Array(length);
    const metaLength = meta.length;
    const header = { type: Type.PUBLISH, code: QUEUE, line: 1, sequence: index + 1, flags: Flag.JSON, metaLength };
    writeHeader(message, 0, length, header);
    message.set(meta, HEADER_BYTES);
    message.set(body, HEADER_BYTES + meta.length);
    peer.session.sendData(message, 0, length, 1);
  }
  await stored(parts);
}

for (const how of ['handler', 'loop'] as const) {
  test(`F50: stored bodies that nobody can read are told, die after maxDeliveries and hold nobody up (${how})`, async () => {
    const parts = await queueParts({ maxDeliveries: 3, deadLetter: DEAD });
    const provider = parts.provider();
    await items(parts, provider, 1);
    await publishBroken(parts);
    await settled(parts, provider.publish(QUEUE, { n: 1 }));
    const client = parts.client();
    const good: unknown[] = [];
    const errors: string[] = [];
    const use = (message: QueueMessage) => {
      good.push(message.key === '' && !message.isJson ? message.text() : message.json());
    };
    const consumption = client.consume(QUEUE, { group: 'g', window: 2 }, how === 'handler' ? use : undefined);
    consumption.on('error', ({ code }) => errors.push(code));
    if (how === 'loop') {
      (async () => {
        for await (const message of consumption) {
          try {
            use(message);
          } catch (error) {
            errors.push((error as { code: string }).code);
            await message.nack();
          }
        }
      })().catch((error) => errors.push(String(error)));
    }
    for (let round = 0; round < 12; round++) await stored(parts);
    assert.deepEqual(good, ['1', { n: 1 }]);
    assert.deepEqual(
      errors,
      Array.from({ length: 9 }, () => 'BODY_INVALID'),
    );
    const queue = parts.made.dispatcher.queues.find(QUEUE)!;
    assert.deepEqual([queue.depth, queue.groups.get('g')!.outstanding], [0, 0]);
    const dead: QueueMessage[] = [];
    client.consume(DEAD, { group: 'd' }, (message) => void dead.push(message));
    await stored(parts);
    assert.deepEqual(
      dead.map(({ key, attrs, body }) => [key, attrs.deadCount, body]),
      broken.map((body, index) => [`broken ${index}`, 3, body]),
    );
    assert.equal(consumption.state, 'active', 'nobody reconnects');
  });
}
