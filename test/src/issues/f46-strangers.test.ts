import assert from 'node:assert/strict';
import { test } from 'node:test';
import { singleMessage, Type } from '@trunkline/proto';
import { connect as connectProvider, type Subscription } from '@trunkline/publisher';
import { connect } from '@trunkline/subscriber';
import { Dealer, Request, Subscriber } from 'zeromq';
import { until } from '../support/wait.js';
import { ghost } from './ghost.js';
import { quiet, Real } from './real.js';

// Raw bytes, port scans and wrong frames at a daemon's port are in the process tests. Here: what is right for ZeroMQ,
// or right for the protocol up to some point.
test('F46: peers that speak ZeroMQ, or half of the protocol, disturb no running subscription', async (t) => {
  const real = await Real.start(t, [{ code: 100 }]);
  const provider = await connectProvider(real.address, quiet);
  let source: Subscription | undefined;
  provider.provide(100, (subscription) => {
    source = subscription;
  });
  const client = await connect(real.address, quiet);
  const got: unknown[] = [];
  await client.subscribe(100, {}, (message) => void got.push(message.json())).accepted();
  let sent = 0;
  const goesOn = async (what: string) => {
    source!.respond(++sent);
    await until(() => got.length === sent, `it goes on after ${what}`);
  };
  const hello = singleMessage({ type: Type.HELLO }, new Uint8Array([0xff, 0xff, 0xff]));
  const frames: (Uint8Array | string)[][] = [
    [''],
    ['', ''],
    ['a', 'b'],
    Array(20).fill('x'),
    Array(20).fill(''),
    [hello],
    [hello, hello],
    [hello.subarray(0, 20)],
    ...[0, 1, 5, 13, 63, 99, 127, 128, 255].map((type) => [singleMessage({ type, code: 100, line: 1 })]),
  ];
  const dealer = new Dealer({ linger: 0 });
  dealer.connect(real.address);
  const inSession = await ghost(real.address, 100);
  for (const each of frames) {
    await dealer.send(each);
    await inSession.send(each);
    await goesOn(`${each.length} frames`);
  }
  const others = [new Request({ linger: 0 }), new Subscriber({ linger: 0 })];
  for (const other of others) other.connect(real.address);
  await (others[0] as Request).send('hello');
  (others[1] as Subscriber).subscribe('');
  await goesOn('sockets of other kinds');
  for (const socket of [dealer, inSession, ...others]) socket.close();
  await until(() => real.dispatcher.peers.size === 2, 'nobody is left');
  await goesOn('all');
  assert.deepEqual(
    got,
    Array.from({ length: sent }, (_, index) => index + 1),
  );
  assert.equal(client.state, 'connected');
  await Promise.all([client.close(), provider.close()]);
});
