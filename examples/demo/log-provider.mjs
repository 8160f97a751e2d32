// Provides the tails of log files as service 2101, params {"path": …}, from inside the folders it is given and nowhere
// else. Run by main.mjs; by hand:
//   node examples/demo/log-provider.mjs tcp://127.0.0.1:7400 /var/log

import { connect, TrunklineError } from '@trunkline/publisher';
import { followLines, openInside } from './tail.mjs';

const [address, ...folders] = process.argv.slice(2);
const provider = await connect(address, { name: 'demo logs' });

provider.provide(2101, async (subscription) => {
  const path = subscription.params?.path;
  if (typeof path !== 'string') throw new TrunklineError('REFUSED', 'params must be {"path": "FILE"}');
  const open = () => openInside(path, folders);
  // what this throws refuses the request
  const first = await open().catch((error) => {
    throw new TrunklineError('REFUSED', error.message);
  });
  // accepted with the return of this function; the lines come later
  send(subscription, followLines(first, open, subscription.signal));
});

/** One response for each line, and none left out: where the dispatcher is behind, the file is read later. */
async function send(subscription, lines) {
  try {
    for await (const line of lines) {
      const { body, options } = responseOf(line);
      while (!subscription.respond(body, options)) await subscription.drained();
    }
  } catch (error) {
    // does nothing when it is over anyway, which is what ends most of them
    subscription.end({ code: 'HANDLER_FAILED', message: error.message });
  }
}

/** JSON lines, as the dispatcher writes them, can be filtered by their level: `attrs.level >= 40`. */
function responseOf(line) {
  try {
    const fields = JSON.parse(line.toString());
    const attrs = typeof fields.level === 'number' ? { level: fields.level } : {};
    return { body: line, options: { json: true, attrs } };
  } catch {
    return { body: line };
  }
}

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => provider.close());
