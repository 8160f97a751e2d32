import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { programVersion } from '../lib/machine.mjs';
import { findProgram, freePort, scratch, startServer } from '../lib/processes.mjs';

/** Read at a time. */
const COUNT = 1000;

export default {
  name: 'redis-stream',
  title: 'Redis Streams, appendfsync always',
  client: 'ioredis',

  version: () => programVersion('redis-server', ['--version']),

  async start() {
    const port = await freePort();
    const options = {
      port,
      bind: '127.0.0.1',
      dir: mkdtempSync(join(scratch(), 'redis-')),
      save: '',
      appendonly: 'yes',
      appendfsync: 'always',
      // its file may grow: rewriting it during a window would only disturb
      'auto-aof-rewrite-percentage': 0,
    };
    const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
    const server = await startServer('redis', findProgram('redis-server'), args, { port });
    return { ...server, url: `redis://127.0.0.1:${port}` };
  },

  async connect(url) {
    const { Redis } = await import('ioredis');
    const redis = new Redis(url);
    return {
      async create(queue, groups) {
        for (const group of groups) await redis.xgroup('CREATE', key(queue), group, '0', 'MKSTREAM');
      },
      remove: (queue) => redis.unlink(key(queue)),
      async publisher(queue) {
        await redis.ping();
        return pipelined(redis, key(queue));
      },
      async consume(queue, group, onMessage) {
        const reader = new Redis(url);
        await reader.ping();
        void read(reader, redis, key(queue), group, onMessage);
      },
    };
  },
};

function key(queue) {
  return `queue.${queue}`;
}

/**
 * What is published in one turn of the event loop is one pipeline with callbacks: by processor time a third less than
 * what the client makes of it itself with `enableAutoPipelining`.
 */
function pipelined(redis, to) {
  let pipeline;
  const flush = () => {
    const sent = pipeline;
    pipeline = undefined;
    void sent.exec();
  };
  return (body, stored) => {
    if (pipeline === undefined) {
      pipeline = redis.pipeline();
      setImmediate(flush);
    }
    pipeline.xadd(to, '*', 'b', body, (error) => {
      if (error) throw error;
      stored();
    });
  };
}

/** The next read does not wait for the acknowledgement of what was read before, but for the one before that. */
async function read(reader, redis, from, group, onMessage) {
  let before = Promise.resolve();
  for (;;) {
    const answer = await reader.xreadgroupBuffer(
      'GROUP',
      group,
      'one',
      'COUNT',
      COUNT,
      'BLOCK',
      1000,
      'STREAMS',
      from,
      '>',
    );
    if (answer === null) continue;
    const [[, entries]] = answer;
    for (const [, [, body]] of entries) onMessage(body);
    const acked = redis.xack(from, group, ...entries.map(([id]) => id));
    await before;
    before = acked;
  }
}
