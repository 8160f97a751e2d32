import { counting, RawClient } from '../lib/raw-client.mjs';
import jetstream from './jetstream.mjs';

let inboxes = 0;

/** NATS JetStream without what nats.js costs. Publishes only. */
export default {
  ...jetstream,
  name: 'jetstream-raw',
  title: 'NATS JetStream, bare socket',
  client: 'bare socket',

  async connect(url) {
    return {
      ...(await jetstream.connect(url)),
      async publisher(queue) {
        const inbox = `_INBOX.raw.${process.pid}.${++inboxes}`;
        // the answer to a publish is a message to the inbox with one object in JSON
        const count = counting('}'.charCodeAt(0));
        let greeted = false;
        const client = await RawClient.open(url, (bytes) => {
          const confirmed = count(bytes) - (greeted ? 0 : 1);
          greeted = true;
          return Math.max(0, confirmed);
        });
        const options = {
          verbose: false,
          pedantic: false,
          tls_required: false,
          lang: 'node',
          version: '1',
          protocol: 1,
        };
        client.write(`CONNECT ${JSON.stringify(options)}\r\nSUB ${inbox} 1\r\n`);
        const tail = Buffer.from('\r\n');
        const heads = new Map();
        return (body, stored) => {
          let head = heads.get(body.length);
          if (head === undefined) {
            head = Buffer.from(`PUB queue-${queue} ${inbox} ${body.length}\r\n`);
            heads.set(body.length, head);
          }
          client.send(head, body, tail, stored);
        };
      },
    };
  },
};
