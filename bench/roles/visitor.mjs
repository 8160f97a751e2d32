// Subscribers that come and go: new connections and new subscriptions, again and again.
import { setTimeout as pause } from 'node:timers/promises';
import { connect } from '@trunkline/subscriber';

const STAY_MS = 20;

let visited = 0;

/** One after the other: a connection with `count` subscriptions of which each has a filter of its own. */
export function comeAndGo({ url, code, count }) {
  void visitForEver(url, code, count).catch((error) => {
    console.error(error);
    process.exit(1);
  });
}

async function visitForEver(url, code, count) {
  for (;;) {
    const client = await connect(url);
    const subscriptions = Array.from({ length: count }, (_, index) =>
      client.subscribe(code, { overflow: 'dropOldest', filter: `key == "${visited + index}"` }, () => {}),
    );
    await Promise.all(subscriptions.map((subscription) => subscription.accepted()));
    await pause(STAY_MS);
    // half of them take their leave, the others are gone with their connection
    await Promise.all(subscriptions.slice(0, count / 2).map((subscription) => subscription.unsubscribe()));
    await client.close();
    visited += count;
  }
}

export function visits() {
  return visited;
}
