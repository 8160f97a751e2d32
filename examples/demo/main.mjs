// Trunkline at work on this machine: a dispatcher, two providers and eleven subscribers.
//
//   npm start                        until Ctrl-C
//   npm start -- --seconds 10        ends by itself
//   npm start -- --config FILE       with another configuration of the dispatcher
//
// While it runs, ask the same dispatcher from another terminal:
//
//   npx trunkline sub 2001 --params '{"intervalMs":1000}' --filter 'key == "all"'
//   npx trunkline streams

import { setMaxListeners } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { connect } from '@trunkline/subscriber';
import { Children } from './children.mjs';
import { Screen } from './screen.mjs';
import { startSubscribers } from './subscribers.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

function readOptions() {
  const { values } = parseArgs({ options: { seconds: { type: 'string' }, config: { type: 'string' } } });
  const { seconds, config = here('../../config/demo.json') } = values;
  if (seconds !== undefined && !/^[1-9]\d{0,5}$/.test(seconds)) {
    throw new Error('--seconds must be a whole number of seconds, at least 1');
  }
  return { seconds: seconds === undefined ? undefined : Number(seconds), config };
}

/** Everything until the end; `stop` is aborted by a signal. */
async function run({ seconds, config }, folder, children, stop) {
  const log = join(folder, 'dispatcher.log');
  const address = await children.startDispatcher(config, log);
  children.start('metrics provider', 'metrics-provider.mjs', [address]);
  children.start('log provider', 'log-provider.mjs', [address, folder]);

  const clients = [];
  const open = async (name) => {
    const client = await connect(address, { name: `demo ${name}`, signal: stop });
    clients.push(client);
    return client;
  };
  const screen = new Screen(address);
  try {
    const subscribers = await startSubscribers(open, log, (line) => screen.line(line));
    await show(screen, subscribers, await open('table'), seconds, stop);
  } catch (error) {
    if (!stop.aborted) throw error;
  } finally {
    screen.close();
    await Promise.all(clients.map((client) => client.close()));
  }
}

/** Until the time is over, or the signal. */
async function show(screen, subscribers, admin, seconds, stop) {
  /** What the dispatcher says of itself: one stream for each distinct request. */
  const streams = async () => (await admin.request(0, { params: { show: 'streams' }, timeoutMs: 5000 })).json().items;

  await Promise.all(subscribers.map(({ subscription }) => subscription.accepted(stop)));
  const end = performance.now() + (seconds ?? Number.POSITIVE_INFINITY) * 1000;
  while (performance.now() < end) {
    screen.show(subscribers, await streams());
    await pause(Math.min(screen.period, end - performance.now()), undefined, { signal: stop });
  }
  screen.last(subscribers, await streams());
}

async function main() {
  const options = readOptions();
  const stop = new AbortController();
  // everything that waits does so with this signal
  setMaxListeners(0, stop.signal);
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => stop.abort());
  const folder = await mkdtemp(join(tmpdir(), 'trunkline-demo-'));
  // a child that ends before its time ends the demo
  const children = new Children((reason) => stop.abort(new Error(reason)));
  try {
    await run(options, folder, children, stop.signal);
    if (stop.signal.reason instanceof Error && stop.signal.reason.name === 'Error') throw stop.signal.reason;
  } finally {
    await children.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

try {
  await main();
} catch (error) {
  console.error(`demo: ${error.message}`);
  process.exitCode = 1;
}
