// A provider that counts what it is asked for, for requests by the hundred thousand.
import { setImmediate as turn } from 'node:timers/promises';
import { connect } from '@trunkline/publisher';

let provider;
let asked = 0;
const open = new Set();
let stopping = false;
let flooding = Promise.resolve();

/** `answers`: every request is answered with one response at once. */
export async function provide({ url, codes, answers = false }) {
  provider = await connect(url);
  const body = new Uint8Array(16);
  for (const code of codes) {
    provider.provide(code, (subscription) => {
      asked++;
      open.add(subscription);
      if (answers) subscription.respond(body);
      return () => open.delete(subscription);
    });
  }
}

export function counts() {
  return { asked, open: open.size };
}

/** Different responses, however many keys they have: the provider has as much to do with one key as with all. */
const RESPONSES = 10_000;

/**
 * Responses whose key goes round `k0` … `k<keys - 1>` and whose attribute `n` is the same number, as fast as they are
 * taken, until `stop`.
 */
export function floodKeys({ keys, size }) {
  stopping = false;
  const [subscription] = open;
  flooding = sendKeys(subscription, { keys, body: new Uint8Array(size) });
}

async function sendKeys(subscription, { keys, body }) {
  const options = Array.from({ length: RESPONSES }, (_, n) => ({ key: `k${n % keys}`, attrs: { n: n % keys } }));
  for (let next = 0; !stopping; ) {
    let taken = true;
    for (let left = 2000; left > 0 && taken; left--) {
      taken = subscription.respond(body, options[next]);
      if (taken) next = next + 1 === RESPONSES ? 0 : next + 1;
    }
    await (taken ? turn() : subscription.drained());
  }
}

export async function stop() {
  stopping = true;
  await flooding;
}
