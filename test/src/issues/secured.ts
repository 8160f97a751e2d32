import type { TestContext } from 'node:test';
import { Dispatcher } from '@trunkline/dispatcher';
import { silentLog } from '@trunkline/proto';
import { nodeContext } from '@trunkline/proto/connect';
import { curveKeyPair, ZmqTransport } from '@trunkline/proto/zmq';
import { configure, noHandlers } from '../support/dispatcher-world.js';
import { quiet } from './real.js';

export const server = curveKeyPair();
export const known = curveKeyPair();
export const other = curveKeyPair();

/** A dispatcher that lets in one key, and what a client says to come in with another. */
export async function secured(t: TestContext, address = 'tcp://127.0.0.1:0', allowed = known) {
  const transport = new ZmqTransport({ curve: { ...server, allowedKeys: [allowed.publicKey] } });
  const dispatcher = new Dispatcher({
    context: nodeContext(),
    transport,
    configuration: configure([{ code: 100 }], { listen: [address], drain: '1ms' }),
    handlers: noHandlers,
    log: silentLog,
  });
  await dispatcher.start();
  t.after(async () => {
    await dispatcher.stop();
    await transport.close();
  });
  const options = (curve?: { publicKey: string; secretKey: string }, serverKey = server.publicKey) => ({
    ...quiet,
    transport: new ZmqTransport(curve === undefined ? {} : { curve: { ...curve, serverKey } }),
  });
  return { transport, address: dispatcher.addresses[0]!, options };
}
