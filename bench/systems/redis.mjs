import { programVersion } from '../lib/machine.mjs';
import { findProgram, freePort, scratch, startServer } from '../lib/processes.mjs';

/** Published in one pipeline, of which two are under way. */
const CHUNK_BYTES = 64 * 1024;

export default {
  name: 'redis',
  title: 'Redis pub/sub',
  client: 'ioredis',

  version: () => programVersion('redis-server', ['--version']),

  async start() {
    const port = await freePort();
    const options = {
      port,
      bind: '127.0.0.1',
      dir: scratch(),
      save: '',
      appendonly: 'no',
      // a subscriber that falls behind for a moment is not cut off
      'client-output-buffer-limit': 'pubsub 0 0 0',
    };
    const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, ...words(name, value)]);
    const server = await startServer('redis', findProgram('redis-server'), args, { port });
    return { ...server, url: `redis://127.0.0.1:${port}` };
  },

  async connect(url) {
    const { Redis } = await import('ioredis');
    return {
      open: async (channel) => new Sender(new Redis(url), `bench.${channel}`),
      async receive(channel, onMessage) {
        const redis = new Redis(url);
        redis.on('messageBuffer', (_channel, message) => onMessage(message, 0));
        await redis.subscribe(`bench.${channel}`);
      },
      async subscribe(first, count, wave) {
        const redis = new Redis(url);
        for (let id = first; id < first + count; id += wave) {
          const length = Math.min(wave, first + count - id);
          await redis.subscribe(...Array.from({ length }, (_, index) => `idle.${id + index}`));
        }
      },
    };
  },
};

function words(name, value) {
  return name === 'client-output-buffer-limit' ? value.split(' ') : [String(value)];
}

class Sender {
  #redis;
  #channel;
  #pipeline;

  constructor(redis, channel) {
    this.#redis = redis;
    this.#channel = channel;
  }

  async ready() {
    await this.#redis.ping();
  }

  async flood(body, stopped) {
    const chunk = Math.max(1, Math.min(500, Math.floor(CHUNK_BYTES / body.length)));
    let before = Promise.resolve();
    while (!stopped()) {
      const pipeline = this.#redis.pipeline();
      for (let left = chunk; left > 0; left--) pipeline.publish(this.#channel, body);
      const now = pipeline.exec();
      await before;
      before = now;
    }
    await before;
  }

  send(body) {
    this.#pipeline ??= this.#redis.pipeline();
    this.#pipeline.publish(this.#channel, body);
    return true;
  }

  flush() {
    void this.#pipeline?.exec();
    this.#pipeline = undefined;
  }

  async drained() {}
}
