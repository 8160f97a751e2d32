import assert from 'node:assert/strict';
import { performance } from 'node:perf_hooks';
import { test } from 'node:test';
import { connect as connectProvider, Provider } from '@trunkline/publisher';
import { Client, connect, type QueueMessage } from '@trunkline/subscriber';
import { until } from '../support/wait.js';
import { items, member, numbers, QUEUE, queueParts, settled, stored } from './queue-support.js';
import { quiet, Real } from './real.js';

const HOUR = 3_600_000;

test('F24: a handler that is stuck costs no session and no other consumer; its message times out and goes to another', async () => {
  const parts = await queueParts({ ackTimeout: '10s' });
  const client = parts.client();
  const stuck: QueueMessage[] = [];
  client.consume(QUEUE, { group: 'g', window: 2 }, (message) => {
    stuck.push(message);
    return parts.sleep(60_000);
  });
  const beside: QueueMessage[] = [];
  client.consume(QUEUE, { group: 'beside' }, (message) => void beside.push(message));
  await stored(parts);
  await items(parts, parts.provider(), 4);
  await stored(parts);
  assert.deepEqual([numbers(stuck), numbers(beside)], [[1], [1, 2, 3, 4]]);
  const other = await member(parts, { ack: 'auto' });
  assert.deepEqual(numbers(other.got), [3, 4]);
  await parts.advance(25_000);
  assert.deepEqual(numbers(other.got), [3, 4, 1, 2]);
  assert.deepEqual([client.state, parts.made.dispatcher.peers.size], ['connected', 3]);
  assert.equal(parts.made.dispatcher.queues.find(QUEUE)!.depth, 0);
});

for (const by of [HOUR, -HOUR]) {
  test(`F56: the date jumps by ${by} ms: ackTimeout, delay and ttl keep their real time`, async (t) => {
    const real = await Real.start(t, [{ code: QUEUE, kind: 'queue', ackTimeout: '400ms' }], { dataDirectory: 'data' });
    await using provider = await connectProvider(real.address, quiet);
    await using client = await connect(real.address, quiet);
    const got: { text: string; at: number; deliveries: number }[] = [];
    const consumption = client.consume(QUEUE, { group: 'g', ack: 'manual' }, (message) => {
      const text = message.text();
      got.push({ text, at: performance.now(), deliveries: message.deliveries });
      if (text !== 'out' || message.redelivered) void message.ack();
    });
    await consumption.accepted;
    const find = (text: string, deliveries = 1) =>
      got.find((each) => each.text === text && each.deliveries === deliveries)?.at;
    const began = performance.now();
    const sent = [
      provider.publish(QUEUE, 'out'),
      provider.publish(QUEUE, 'later', { delayMs: 300, ttlMs: 60_000 }),
      provider.publish(QUEUE, 'never', { delayMs: 400, ttlMs: 200 }),
    ];
    await Promise.all(sent);
    await until(() => find('out') !== undefined, 'it is delivered');
    const { now } = Date;
    Date.now = () => now() + by;
    t.after(() => {
      Date.now = now;
    });
    await until(() => find('out', 2) !== undefined, 'the ack timeout is over');
    await until(() => find('later') !== undefined, 'the delay is over');
    assert.ok(find('out', 2)! - find('out')! >= 395, 'not before its time');
    assert.ok(find('later')! - began >= 295, 'not before its time');
    await until(() => real.dispatcher.queues.find(QUEUE)!.depth === 0, 'the third one has expired');
    assert.equal(find('never'), undefined);
  });
}

test('F87: a publisher that waits for room holds up neither acks nor deliveries of its own connection', async () => {
  const parts = await queueParts({}, [{ code: 4003, kind: 'queue', storage: 'memory' }]);
  const connection = parts.dial();
  const client = new Client(connection);
  const provider = new Provider();
  provider.attach(connection);
  await settled(parts, provider.publishMany(4003, [{ body: 'a' }, { body: 'b' }]));
  // the device takes nothing for a minute: what is published holds back the credit
  const { disk, configuration } = parts.made;
  disk.behaviour.flush = [60_000, 60_000];
  const { receiveWindow } = configuration.session;
  const body = new Uint8Array(256 * 1024);
  const count = Math.ceil((3 * receiveWindow) / body.length);
  const publishes = Array.from({ length: count }, () => provider.publish(QUEUE, body));
  await parts.advance(1000);
  assert.ok(connection.session!.credit <= 0, 'the publisher is out of credit');
  const got: QueueMessage[] = [];
  client.consume(4003, { group: 'g', ack: 'manual' }, (message) => void got.push(message));
  await stored(parts);
  assert.equal(got.length, 2);
  await settled(parts, Promise.all(got.map((message) => message.ack())));
  assert.equal(parts.made.dispatcher.queues.find(4003)!.depth, 0);
  assert.equal(provider.unconfirmed, count);
  disk.behaviour.flush = [0, 2];
  await parts.advance(62_000);
  const sequences = await settled(parts, Promise.all(publishes));
  assert.deepEqual(
    sequences,
    Array.from({ length: count }, (_, index) => index + 1),
  );
});
