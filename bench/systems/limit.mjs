import { fileURLToPath } from 'node:url';
import { packageVersion } from '../lib/machine.mjs';
import { freePort, profiling, startServer } from '../lib/processes.mjs';

const program = fileURLToPath(new URL('../lib/forwarder.mjs', import.meta.url));

export const HEADER_BYTES = 32;
export const BATCH_BYTES = 32 * 1024;
/** Batches that may wait at each place: together about what a Trunkline session may have under way. */
export const HIGH_WATER = 100;
/** The first byte of a client's first batch. */
export const JOIN = 1;

/** What ZeroMQ can do on this machine from Node: batches in, headers walked, batches out, and nothing else. */
export default {
  name: 'limit',
  title: 'bare forwarder',
  client: 'zeromq',

  version: () => packageVersion('zeromq'),

  async start() {
    const port = await freePort();
    const url = `tcp://127.0.0.1:${port}`;
    const args = [...profiling('forwarder'), program, url];
    return { ...(await startServer('limit', process.execPath, args, { port })), url };
  },

  async connect(url) {
    const { Dealer } = await import('zeromq');
    const dealer = () => {
      const options = { linger: 0, sendHighWaterMark: HIGH_WATER, receiveHighWaterMark: HIGH_WATER };
      const socket = new Dealer(options);
      socket.connect(url);
      return socket;
    };
    return {
      open: async (channel) => new Sender(dealer(), channel),
      receive: (channel, onMessage) => receive(dealer(), channel, onMessage),
    };
  },
};

async function receive(socket, channel, onMessage) {
  await socket.send(joinMessage(channel));
  // the forwarder says that it knows of this subscriber
  await socket.receive();
  void receiveAll(socket, onMessage);
}

async function receiveAll(socket, onMessage) {
  for await (const [batch] of socket) {
    for (let at = 0; at < batch.length; at += batch.readUInt32LE(at)) onMessage(batch, at + HEADER_BYTES);
  }
}

function joinMessage(channel) {
  const message = Buffer.alloc(HEADER_BYTES);
  message.writeUInt32LE(HEADER_BYTES, 0);
  message[5] = JOIN;
  message.writeUInt32LE(channel, 8);
  return message;
}

class Sender {
  #socket;
  #channel;
  #batch = Buffer.alloc(0);
  #used = 0;
  #sent = Promise.resolve();

  constructor(socket, channel) {
    this.#socket = socket;
    this.#channel = channel;
  }

  async ready() {}

  async flood(body, stopped) {
    while (!stopped()) {
      while (this.#fits(body)) this.send(body);
      this.flush();
      await this.#sent;
    }
    await this.#sent;
  }

  #fits(body) {
    const length = HEADER_BYTES + body.length;
    return this.#used === 0 || this.#used + length <= BATCH_BYTES;
  }

  send(body) {
    if (!this.#fits(body)) this.flush();
    const length = HEADER_BYTES + body.length;
    // a batch given to ZeroMQ is never written again
    if (this.#used === 0) this.#batch = Buffer.allocUnsafeSlow(Math.max(BATCH_BYTES, length));
    const at = this.#used;
    this.#batch.fill(0, at, at + HEADER_BYTES);
    this.#batch.writeUInt32LE(length, at);
    this.#batch.writeUInt32LE(this.#channel, at + 8);
    this.#batch.set(body, at + HEADER_BYTES);
    this.#used += length;
    return true;
  }

  flush() {
    if (this.#used === 0) return;
    const batch = this.#batch.subarray(0, this.#used);
    this.#used = 0;
    // one send at a time: a second one would throw
    this.#sent = this.#sent.then(() => this.#socket.send(batch));
  }

  async drained() {}
}
