// The bare forwarder: `node forwarder.mjs ADDRESS`. No session, no credit, no filter, no check: the upper bound.
import { setImmediate as turn } from 'node:timers/promises';
import { Router } from 'zeromq';
import { HIGH_WATER, JOIN } from '../systems/limit.mjs';

const router = new Router({
  mandatory: true,
  linger: 0,
  sendHighWaterMark: HIGH_WATER,
  receiveHighWaterMark: HIGH_WATER,
});
/** Routing ids of the subscribers by channel. */
const subscribers = new Map();
await router.bind(process.argv[2]);
process.on('SIGTERM', () => process.exit());

for await (const [id, batch] of router) {
  const channel = batch.readUInt32LE(8);
  if (batch[5] === JOIN) {
    subscribers.set(channel, [...(subscribers.get(channel) ?? []), id]);
    await router.send([id, batch]);
    continue;
  }
  let at = 0;
  while (at < batch.length) at += batch.readUInt32LE(at);
  if (at !== batch.length) continue;
  for (const subscriber of subscribers.get(channel) ?? []) await forward(subscriber, batch);
}

/** Waits while the subscriber is full; nothing is lost, and TCP tells the sender. */
async function forward(subscriber, batch) {
  for (;;) {
    try {
      await router.send([subscriber, batch]);
      return;
    } catch (error) {
      // EHOSTUNREACH: it left, and its system is not measured any more
      if (error.code !== 'EAGAIN') return;
      await turn();
    }
  }
}
