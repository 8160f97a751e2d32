import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort, profiling, scratch, startServer } from '../lib/processes.mjs';

export const program = fileURLToPath(new URL('../../cli/bin/trunkline.js', import.meta.url));
const manifest = new URL('../../dispatcher/package.json', import.meta.url);

/** Sent between two looks at the event loop. */
const CHUNK_BYTES = 256 * 1024;

/** Channels are service codes up to here. */
const LAST_CHANNEL = 999;
/** Distinct requests by the hundred thousand. */
export const STORM = 1000;
/** The same without probes of silent streams. */
export const IDLE = 1001;

const services = [
  // lossless, so that what is delivered is what was sent; a subscriber may ask for dropOldest
  { code: `1-${LAST_CHANNEL}`, overflow: ['block', 'dropOldest'] },
  { code: STORM, limits: { maxStreams: 2_000_000 } },
  { code: IDLE, limits: { maxStreams: 2_000_000 }, probeAfter: '0s' },
];

export default {
  name: 'trunkline',
  title: 'Trunkline',
  client: '@trunkline/subscriber',

  version: () => JSON.parse(readFileSync(manifest, 'utf8')).version,

  /** @param port to start again where an earlier one was */
  async start({ port } = {}) {
    const at = port ?? (await freePort());
    const file = join(mkdtempSync(join(scratch(), 'trunkline-')), 'config.json');
    writeFileSync(file, JSON.stringify({ listen: [`tcp://127.0.0.1:${at}`], services, log: { level: 'warn' } }));
    const args = [...profiling('daemon'), program, 'dispatcher', '--config', file];
    const server = await startServer('trunkline', process.execPath, args, { port: at });
    return { ...server, url: `tcp://127.0.0.1:${at}`, port: at };
  },

  async connect(url) {
    const link = new Link(url);
    return {
      open: (channel) => link.open(channel),
      receive: (channel, onMessage) => link.receive(channel, onMessage),
      subscribe: (first, count, wave) => link.subscribe(IDLE, first, count, wave),
    };
  },
};

class Link {
  #url;
  #provider;
  #client;

  constructor(url) {
    this.#url = url;
  }

  async open(channel) {
    const { connect } = await import('@trunkline/publisher');
    this.#provider ??= connect(this.#url);
    const sender = new Sender();
    (await this.#provider).provide(channel, (subscription) => sender.begin(subscription));
    return sender;
  }

  async client() {
    const { connect } = await import('@trunkline/subscriber');
    this.#client ??= connect(this.#url);
    return this.#client;
  }

  async receive(channel, onMessage) {
    const client = await this.client();
    const handler = (message) => {
      const { body } = message;
      onMessage(body, 0);
    };
    await client.subscribe(channel, {}, handler).accepted();
  }

  async subscribe(code, first, count, wave) {
    const client = await this.client();
    for (let begin = first; begin < first + count; begin += wave) {
      const accepted = [];
      for (let id = begin; id < Math.min(begin + wave, first + count); id++) {
        accepted.push(client.subscribe(code, { params: { id } }, () => {}).accepted());
      }
      await Promise.all(accepted);
    }
  }
}

class Sender {
  #subscription;
  #begun;
  #begin = () => {};

  constructor() {
    this.#begun = new Promise((resolve) => {
      this.#begin = resolve;
    });
  }

  begin(subscription) {
    this.#subscription = subscription;
    this.#begin();
  }

  ready() {
    return this.#begun;
  }

  async flood(body, stopped) {
    const subscription = this.#subscription;
    const chunk = Math.max(1, Math.floor(CHUNK_BYTES / (body.length + 32)));
    while (!stopped()) {
      let taken = true;
      for (let left = chunk; left > 0 && taken; left--) taken = subscription.respond(body);
      await (taken ? turn() : subscription.drained());
    }
  }

  send(body) {
    return this.#subscription.respond(body);
  }

  /** The SDK sends what is written by itself as soon as the running code returns. */
  flush() {}

  drained() {
    return this.#subscription.drained();
  }
}
