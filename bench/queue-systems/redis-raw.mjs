import { counting, RawClient } from '../lib/raw-client.mjs';
import redis from './redis-stream.mjs';

/** Redis Streams without what ioredis costs. Publishes only. */
export default {
  ...redis,
  name: 'redis-raw',
  title: 'Redis Streams, bare socket',
  client: 'bare socket',

  async connect(url) {
    return {
      ...(await redis.connect(url)),
      async publisher(queue) {
        // the answer to XADD is one bulk string
        const client = await RawClient.open(url, counting('$'.charCodeAt(0)));
        const key = `queue.${queue}`;
        const tail = Buffer.from('\r\n');
        const heads = new Map();
        return (body, stored) => {
          const { length } = body;
          let head = heads.get(length);
          if (head === undefined) {
            head = Buffer.from(`*5\r\n$4\r\nXADD\r\n$${key.length}\r\n${key}\r\n$1\r\n*\r\n$1\r\nb\r\n$${length}\r\n`);
            heads.set(length, head);
          }
          client.send(head, body, tail, stored);
        };
      },
    };
  },
};
