import { Worker } from './processes.mjs';
import { loadSystem } from './system.mjs';

/** A dispatcher with the client processes that a scenario asks for, all stopped by `close`. */
export class Cast {
  #workers = [];

  constructor(system, server) {
    this.system = system;
    this.server = server;
  }

  static async open(systemName) {
    const system = await loadSystem(systemName);
    return new Cast(system, await system.start());
  }

  static async with(systemName, action) {
    const cast = await Cast.open(systemName);
    try {
      return await action(cast);
    } finally {
      await cast.close();
    }
  }

  get url() {
    return this.server.url;
  }

  async provider(options) {
    const worker = this.worker('provider');
    await worker.call('provide', { url: this.url, ...options });
    return worker;
  }

  async subscriber(options) {
    const worker = this.worker('subscriber');
    await worker.call('open', { url: this.url, ...options });
    return worker;
  }

  worker(role) {
    const worker = new Worker(role);
    this.#workers.push(worker);
    return worker;
  }

  async close() {
    await Promise.all(this.#workers.map((worker) => worker.stop()));
    await this.server.stop();
  }
}
