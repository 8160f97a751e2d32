// Who asks for what. Each has a connection of its own, as if it were another program on another machine.

const every = (intervalMs) => ({ intervalMs });

const wishes = (log) => [
  // one request, three ways to look at it: one upstream subscription, three lanes
  { name: 'cpu', code: 2001, options: { params: every(1000), filter: 'key == "all"' } },
  { name: 'busy cores', code: 2001, options: { params: every(1000), filter: 'key != "all" && attrs.busy >= 25.0' } },
  { name: 'every core', code: 2001, options: { params: every(1000), filter: 'key != "all"' } },
  // two who want exactly the same share even the lane
  { name: 'memory 1', code: 2002, options: { params: every(1000) } },
  { name: 'memory 2', code: 2002, options: { params: every(1000) } },
  { name: 'load', code: 2003, options: { params: every(500) } },
  { name: 'disks', code: 2004, options: { params: every(1000) } },
  // sampled five times a second, delivered once: the newest of each interface
  { name: 'network', code: 2005, options: { params: every(200), return: 'latest', rate: 1 } },
  // another interval is another request
  { name: 'slow network', code: 2005, options: { params: every(2000), filter: 'attrs.receivedBytes > 0.0' } },
  // a group shares the work: each line goes to one of the two
  { name: 'log reader 1', code: 2101, options: { params: { path: log }, return: 'group', group: 'readers' } },
  { name: 'log reader 2', code: 2101, options: { params: { path: log }, return: 'group', group: 'readers' } },
];

/** Starts them all. `open` gives each a client; `print` gets a line for everything that happens. */
export function startSubscribers(open, log, print) {
  return Promise.all(
    wishes(log).map(async ({ name, code, options }) => {
      const client = await open(name);
      const subscriber = { name, code, state: 'pending', messages: 0, last: '', subscription: undefined };
      const tell = (text) => {
        subscriber.last = text;
        print(`${name}: ${text}`);
      };
      const subscription = client.subscribe(code, options, (message) => {
        subscriber.messages++;
        tell(`${message.key === '' ? '' : `${message.key} `}${message.text()}`);
      });
      subscription.on('status', ({ state, reason }) => {
        subscriber.state = state;
        tell(`is ${state}${reason === '' ? '' : ` (${reason})`}`);
      });
      subscription.on('gap', ({ count, reason }) => tell(`missed ${count} (${reason})`));
      subscription.on('error', (error) => tell(`${error.code}: ${error.message}`));
      subscription.on('end', ({ code: reason }) => {
        subscriber.state = 'ended';
        if (reason !== 'CLOSED') tell(`ended: ${reason}`);
      });
      subscriber.subscription = subscription;
      return subscriber;
    }),
  );
}
