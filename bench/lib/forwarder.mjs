// The bare forwarder: `node forwarder.mjs ADDRESS`. No session, no credit, no filter, no check: the upper bound.
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
  for (const subscriber of subscribers.get(channel) ?? []) {
    try {
      await router.send([subscriber, batch]);
    } catch {
      // a client that left; its system is not measured any more
    }
  }
}
