import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { programVersion } from '../lib/machine.mjs';
import { findProgram, freePort, scratch, startServer } from '../lib/processes.mjs';

/** Published between two flushes, of which two are under way. */
const CHUNK_BYTES = 128 * 1024;

export default {
  name: 'nats',
  title: 'NATS',
  client: '@nats-io/transport-node',

  version: () => programVersion('nats-server', ['--version']),

  async start() {
    const port = await freePort();
    const file = join(scratch(), `nats-${port}.conf`);
    // max_pending: a subscriber that falls behind for a moment is not cut off
    writeFileSync(file, `listen: "127.0.0.1:${port}"\nmax_pending: 1GB\n`);
    const server = await startServer('nats', findProgram('nats-server'), ['-c', file], { port });
    return { ...server, url: `127.0.0.1:${port}` };
  },

  async connect(url) {
    const { connect } = await import('@nats-io/transport-node');
    const connection = await connect({ servers: url, maxReconnectAttempts: -1 });
    return {
      open: async (channel) => new Sender(connection, `bench.${channel}`),
      async receive(channel, onMessage) {
        // callbacks: the documentation's way to the highest rate
        connection.subscribe(`bench.${channel}`, { callback: (_error, message) => onMessage(message.data, 0) });
        await connection.flush();
      },
      async subscribe(first, count, wave) {
        for (let id = first; id < first + count; id++) {
          connection.subscribe(`idle.${id}`, { callback: () => {} });
          if ((id + 1 - first) % wave === 0) await connection.flush();
          else if (id % 1000 === 0) await turn();
        }
        await connection.flush();
      },
    };
  },
};

class Sender {
  #connection;
  #subject;

  constructor(connection, subject) {
    this.#connection = connection;
    this.#subject = subject;
  }

  async ready() {}

  async flood(body, stopped) {
    const connection = this.#connection;
    const chunk = Math.max(1, Math.floor(CHUNK_BYTES / (body.length + 16)));
    let before = Promise.resolve();
    while (!stopped()) {
      for (let left = chunk; left > 0; left--) connection.publish(this.#subject, body);
      const now = connection.flush();
      await before;
      before = now;
    }
    await before;
  }

  send(body) {
    this.#connection.publish(this.#subject, body);
    return true;
  }

  /** The client writes what was published by itself, once the running code returns. */
  flush() {}

  async drained() {}
}
