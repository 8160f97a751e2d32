import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Link, LinkEvents } from '@trunkline/proto';
import { ZmqTransport, type ZmqTransportOptions } from '@trunkline/proto/zmq';
import { until } from '../../support/wait.js';

function transport(t: TestContext, options: ZmqTransportOptions = {}): ZmqTransport {
  const made = new ZmqTransport(options);
  t.after(() => made.close());
  return made;
}

class Record implements LinkEvents {
  readonly batches: Uint8Array[] = [];
  readonly links = new Set<Link>();
  readonly told: string[] = [];
  steps = 0;
  suspects = 0;
  answer = false;
  onBatch(link: Link, batch: Uint8Array): void {
    this.links.add(link);
    this.batches.push(batch);
    if (this.answer) link.send(batch);
  }
  onUp(): void {
    this.told.push('up');
  }
  onDown(_link: Link, reason: string): void {
    this.told.push(`down: ${reason}`);
  }
  onSuspect(): void {
    this.suspects++;
  }
  onStepEnd(): void {
    this.steps++;
  }
}

const numbered = (number: number, bytes = 8): Uint8Array => {
  const batch = new Uint8Array(bytes);
  new DataView(batch.buffer).setUint32(0, number, true);
  return batch;
};
const numberIn = (batch: Uint8Array): number => new DataView(batch.buffer, batch.byteOffset).getUint32(0, true);

for (const bytes of [8, 128, 129, 5000]) {
  test(`F31: a thousand batches of ${bytes} bytes sent in one tick arrive in order, both ways`, async (t) => {
    const zmq = transport(t);
    const server = new Record();
    server.answer = true;
    const listener = await zmq.listen('tcp://127.0.0.1:0', server);
    const client = new Record();
    const link = zmq.dial(listener.address, client);
    await until(() => client.told.length > 0, 'the link is up');
    for (let i = 0; i < 1000; i++) link.send(numbered(i, bytes));
    await until(() => client.batches.length === 1000, 'all came back');
    assert.deepEqual(client.batches.map(numberIn), [...Array(1000).keys()]);
    assert.deepEqual(server.batches.map(numberIn), [...Array(1000).keys()]);
    assert.equal(server.links.size, 1);
    assert.deepEqual(client.told, ['up']);
    assert.ok(client.steps > 0 && server.steps > 0);
  });
}
