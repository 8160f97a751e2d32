import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram, freePort, scratch, startServer } from '../lib/processes.mjs';
import { WINDOW } from '../lib/queue-system.mjs';
import nats from '../systems/nats.mjs';

export default {
  name: 'jetstream',
  title: 'NATS JetStream, file',
  client: '@nats-io/jetstream',
  promise: 'handed to the system, not flushed: a kill loses nothing, a power cut loses what was confirmed last',
  version: nats.version,

  async start() {
    const port = await freePort();
    const directory = mkdtempSync(join(scratch(), 'jetstream-'));
    const file = join(directory, 'server.conf');
    const store = `jetstream: { store_dir: "${directory}", max_file_store: 100GB }`;
    writeFileSync(file, `listen: "127.0.0.1:${port}"\nmax_pending: 1GB\n${store}\n`);
    const server = await startServer('jetstream', findProgram('nats-server'), ['-c', file], { port });
    return { ...server, url: `127.0.0.1:${port}` };
  },

  async connect(url) {
    const { connect } = await import('@nats-io/transport-node');
    const { AckPolicy, jetstream, jetstreamManager } = await import('@nats-io/jetstream');
    const connection = await connect({ servers: url, maxReconnectAttempts: -1 });
    const stream = jetstream(connection);
    const manager = await jetstreamManager(connection);
    return {
      async create(queue, groups) {
        await manager.streams.add({ name: name(queue), subjects: [name(queue)], storage: 'file' });
        for (const group of groups) {
          const options = { durable_name: group, ack_policy: AckPolicy.Explicit, max_ack_pending: WINDOW };
          await manager.consumers.add(name(queue), options);
        }
      },
      remove: (queue) => manager.streams.delete(name(queue)),
      async publisher(queue) {
        const to = name(queue);
        return (body, stored) => void stream.publish(to, body, { timeout: 60_000 }).then(stored);
      },
      async consume(queue, group, onMessage) {
        const consumer = await stream.consumers.get(name(queue), group);
        await consumer.consume({
          max_messages: WINDOW,
          callback(message) {
            onMessage(message.data);
            message.ack();
          },
        });
      },
    };
  },
};

function name(queue) {
  return `queue-${queue}`;
}
