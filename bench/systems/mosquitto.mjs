import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { findProgram, freePort, scratch, startServer } from '../lib/processes.mjs';

/** Published and not yet written to the connection. */
const WINDOW_BYTES = 128 * 1024;
const WINDOW_MESSAGES = 500;

export default {
  name: 'mosquitto',
  title: 'Mosquitto',
  client: 'mqtt',

  version() {
    // -h prints the version and ends with 1 or 3
    const program = findProgram('mosquitto');
    try {
      return versionIn(execFileSync(program, ['-h'], { encoding: 'utf8' }));
    } catch (error) {
      return versionIn(String(error.stdout));
    }
  },

  async start() {
    const port = await freePort();
    const file = join(scratch(), `mosquitto-${port}.conf`);
    const lines = [
      `listener ${port} 127.0.0.1`,
      'allow_anonymous true',
      'persistence false',
      'set_tcp_nodelay true',
      // a subscriber that falls behind for a moment loses nothing
      'max_queued_messages 0',
      'max_queued_bytes 0',
      'log_type error',
    ];
    writeFileSync(file, `${lines.join('\n')}\n`);
    const server = await startServer('mosquitto', findProgram('mosquitto'), ['-c', file], { port });
    return { ...server, url: `mqtt://127.0.0.1:${port}` };
  },

  async connect(url) {
    const { connectAsync } = await import('mqtt');
    return {
      open: async (channel) => new Sender(await connectAsync(url), `bench/${channel}`),
      async receive(channel, onMessage) {
        const client = await connectAsync(url);
        client.on('message', (_topic, message) => onMessage(message, 0));
        await client.subscribeAsync(`bench/${channel}`, { qos: 0 });
      },
    };
  },
};

function versionIn(text) {
  return /version (\S+)/.exec(text)?.[1] ?? 'unknown';
}

class Sender {
  #client;
  #topic;

  constructor(client, topic) {
    this.#client = client;
    this.#topic = topic;
  }

  async ready() {}

  async flood(body, stopped) {
    const window = Math.min(WINDOW_MESSAGES, Math.max(4, Math.floor(WINDOW_BYTES / body.length)));
    let open = 0;
    let wake = () => {};
    const written = () => {
      open--;
      if (open <= window / 2) wake();
    };
    while (!stopped()) {
      for (let left = window - open; left > 0; left--) {
        open++;
        this.#client.publish(this.#topic, body, written);
      }
      if (open > window / 2) {
        await new Promise((resolve) => {
          wake = resolve;
        });
      }
      await turn();
    }
  }

  send(body) {
    this.#client.publish(this.#topic, body);
    return true;
  }

  flush() {}

  async drained() {}
}
