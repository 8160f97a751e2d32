import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, profiling, scratch, startServer } from '../lib/processes.mjs';
import { WINDOW } from '../lib/queue-system.mjs';
import live, { program } from '../systems/trunkline.mjs';

/** Declared at run time from here on. */
const FIRST_QUEUE = 5000;

export default {
  name: 'trunkline',
  title: 'Trunkline',
  client: '@trunkline/publisher',
  version: live.version,

  async start() {
    const port = await freePort();
    const directory = mkdtempSync(join(scratch(), 'trunkline-'));
    const file = join(directory, 'config.json');
    const config = {
      listen: [`tcp://127.0.0.1:${port}`],
      dataDirectory: join(directory, 'data'),
      services: [{ code: '1-9', overflow: ['block', 'dropOldest'] }],
      log: { level: 'warn' },
    };
    writeFileSync(file, JSON.stringify(config));
    const args = [...profiling('daemon'), program, 'dispatcher', '--config', file];
    const server = await startServer('trunkline', process.execPath, args, { port });
    return { ...server, url: `tcp://127.0.0.1:${port}` };
  },

  async connect(url) {
    let provider;
    let client;
    const publisher = async () => {
      const { connect } = await import('@trunkline/publisher');
      provider ??= await connect(url);
      return provider;
    };
    const subscriber = async () => {
      const { connect } = await import('@trunkline/subscriber');
      client ??= await connect(url);
      return client;
    };
    return {
      async create(queue, groups) {
        const { queues } = await subscriber();
        await queues.declare(FIRST_QUEUE + queue, { storage: 'disk', maxBytes: '2047MiB' });
        for (const group of groups) {
          const consumption = (await subscriber()).consume(FIRST_QUEUE + queue, { group }, () => {});
          await consumption.accepted;
          await consumption.close();
        }
      },
      remove: async (queue) => (await subscriber()).queues.delete(FIRST_QUEUE + queue),
      async publisher(queue) {
        const to = await publisher();
        const code = FIRST_QUEUE + queue;
        return (body, stored) => void to.publish(code, body).then(stored);
      },
      async consume(queue, group, onMessage) {
        const handler = (message) => onMessage(message.body);
        const consumption = (await subscriber()).consume(FIRST_QUEUE + queue, { group, window: WINDOW }, handler);
        await consumption.accepted;
      },
    };
  },
};
