// A publisher that does as it is told by the test, and keeps count of what became of it.
import { ZmtpTransport } from '@trunkline/proto/zmtp';
import { connect, type Provider } from '@trunkline/publisher';
import { serve } from '../fixtures/serve.js';

export interface Flood {
  readonly taken: number;
  readonly refused: number;
  readonly mostRss: number;
}

export interface Outcomes {
  readonly stored: number;
  /** By code. */
  readonly failed: Record<string, number>;
  readonly unconfirmed: number;
  /** How many different sequences were told. */
  readonly places: number;
}

let provider: Provider;
const sequences = new Set<number>();
const failed: Record<string, number> = {};
let stored = 0;

serve({
  async open(target: string, heartbeat: number) {
    const transport = new ZmtpTransport({ reconnectMs: 50, reconnectMaxMs: 150 });
    provider = await connect(target, { limits: { heartbeat }, transport });
  },
  rss: () => process.memoryUsage().rss,
  /** Publishes as fast as it can for so long and never waits, neither for room nor for answers. */
  async flood(code: number, ms: number, size: number): Promise<Flood> {
    const body = 'x'.repeat(size);
    let taken = 0;
    let refused = 0;
    let mostRss = 0;
    const end = performance.now() + ms;
    while (performance.now() < end) {
      for (let index = 0; index < 500; index++) {
        const before = provider.unconfirmed;
        const answer = provider.publish(code, body);
        if (provider.unconfirmed === before) {
          refused++;
          answer.catch(() => {});
          continue;
        }
        taken++;
        answer.then(
          (sequence) => {
            stored++;
            sequences.add(sequence);
          },
          ({ code: reason }: { code: string }) => {
            failed[reason] = (failed[reason] ?? 0) + 1;
          },
        );
      }
      mostRss = Math.max(mostRss, process.memoryUsage().rss);
      await new Promise(setImmediate);
    }
    return { taken, refused, mostRss };
  },
  outcomes: (): Outcomes => ({ stored, failed, unconfirmed: provider.unconfirmed, places: sequences.size }),
});
