// Provides this host's own metrics as services 2001 to 2005. Run by main.mjs; by hand:
//   node examples/demo/metrics-provider.mjs tcp://127.0.0.1:7400

import { connect, TrunklineError } from '@trunkline/publisher';
import { samplers } from './metrics.mjs';

const SHORTEST_MS = 100;
const LONGEST_MS = 60_000;

/** @throws TrunklineError REFUSED: then nobody is subscribed, and everybody who asked is told why */
function intervalOf(params) {
  const interval = params?.intervalMs;
  if (Number.isInteger(interval) && interval >= SHORTEST_MS && interval <= LONGEST_MS) return interval;
  throw new TrunklineError('REFUSED', `params must be {"intervalMs": ${SHORTEST_MS}..${LONGEST_MS}}`);
}

const provider = await connect(process.argv[2] ?? 'tcp://127.0.0.1:7400', { name: 'demo metrics' });

for (const [code, createSampler] of samplers) {
  // called once for each distinct interval, however many subscribers ask for it
  provider.provide(code, (subscription) => {
    const interval = intervalOf(subscription.params);
    const sample = createSampler();
    const send = () => {
      try {
        // a response that is not taken, as the dispatcher is behind, is left out: a newer one follows
        for (const { key, ...values } of sample()) subscription.respond(values, { key, attrs: values });
      } catch (error) {
        subscription.end({ code: 'HANDLER_FAILED', message: error.message });
      }
    };
    send();
    const timer = setInterval(send, interval);
    // called with the last unsubscribe
    return () => clearInterval(timer);
  });
}

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => provider.close());
