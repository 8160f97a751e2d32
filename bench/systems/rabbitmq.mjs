import { mkdirSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { findProgram, freePort, scratch, startServer } from '../lib/processes.mjs';

const CHUNK = 256;
const EXCHANGE = 'amq.direct';
const home = '/usr/lib/rabbitmq';

export default {
  name: 'rabbitmq',
  title: 'RabbitMQ',
  client: 'amqplib',

  version() {
    findProgram('rabbitmq-server');
    const [folder] = readdirSync(`${home}/lib`);
    return folder?.replace('rabbitmq_server-', '') ?? 'unknown';
  },

  async start() {
    const [port, epmdPort, distributionPort] = [await freePort(), await freePort(), await freePort()];
    // in the foreground and of our own, so that none stays behind
    const epmdArgs = ['-port', String(epmdPort), '-address', '127.0.0.1'];
    const epmd = await startServer('epmd', findProgram('epmd'), epmdArgs, { port: epmdPort });
    const dir = mkdtempSync(join(scratch(), 'rabbitmq-'));
    for (const folder of ['mnesia', 'log']) mkdirSync(join(dir, folder));
    writeFileSync(join(dir, 'rabbitmq.conf'), `listeners.tcp.1 = 127.0.0.1:${port}\n`);
    writeFileSync(join(dir, 'plugins'), '[].\n');
    writeFileSync(join(dir, 'env.conf'), '');
    const env = {
      HOME: dir,
      // with it the script replaces itself by the Erlang machine
      RUNNING_UNDER_SYSTEMD: 'yes',
      ERL_EPMD_PORT: String(epmdPort),
      ERL_EPMD_ADDRESS: '127.0.0.1',
      RABBITMQ_CONF_ENV_FILE: join(dir, 'env.conf'),
      RABBITMQ_CONFIG_FILE: join(dir, 'rabbitmq.conf'),
      RABBITMQ_ENABLED_PLUGINS_FILE: join(dir, 'plugins'),
      RABBITMQ_NODENAME: `bench${port}@localhost`,
      RABBITMQ_DIST_PORT: String(distributionPort),
      RABBITMQ_MNESIA_BASE: join(dir, 'mnesia'),
      RABBITMQ_LOG_BASE: join(dir, 'log'),
      RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-kernel inet_dist_use_interface {127,0,0,1}',
    };
    let server;
    try {
      server = await startServer('rabbitmq', findProgram(`${home}/bin/rabbitmq-server`), [], { port, env });
    } catch (error) {
      await epmd.stop();
      throw error;
    }
    const stop = async () => {
      await server.stop('SIGKILL');
      await epmd.stop();
    };
    return { pid: server.pid, stop, url: `amqp://127.0.0.1:${port}` };
  },

  async connect(url) {
    const { default: amqp } = await import('amqplib');
    const connection = await amqp.connect(url, { noDelay: true });
    return {
      open: async (channel) => new Sender(await connection.createChannel(), `bench.${channel}`),
      async receive(channel, onMessage) {
        const consumer = await connection.createChannel();
        const { queue } = await consumer.assertQueue('', { exclusive: true, durable: false });
        await consumer.bindQueue(queue, EXCHANGE, `bench.${channel}`);
        await consumer.consume(queue, (message) => onMessage(message.content, 0), { noAck: true });
      },
    };
  },
};

class Sender {
  #channel;
  #key;

  constructor(channel, key) {
    this.#channel = channel;
    this.#key = key;
  }

  async ready() {}

  async flood(body, stopped) {
    while (!stopped()) {
      let room = true;
      for (let left = CHUNK; left > 0 && room; left--) room = this.#channel.publish(EXCHANGE, this.#key, body);
      await (room ? turn() : new Promise((resolve) => this.#channel.once('drain', resolve)));
    }
  }

  /** Taken in any case: the client keeps what the connection does not take yet. */
  send(body) {
    this.#channel.publish(EXCHANGE, this.#key, body);
    return true;
  }

  flush() {}

  async drained() {}
}
