// A member of a group that does as it is told by the test: it keeps what it gets until it may acknowledge it.
import { ZmtpTransport } from '@trunkline/proto/zmtp';
import { type Client, connect, type QueueMessage, TrunklineError } from '@trunkline/subscriber';
import { serve } from '../fixtures/serve.js';

export interface Got {
  readonly sequence: number;
  readonly body: string;
  readonly deliveries: number;
  readonly redelivered: boolean;
}

let client: Client;
const held: QueueMessage[] = [];
const got: Got[] = [];
let auto = false;

serve({
  async open(target: string) {
    const transport = new ZmtpTransport({ reconnectMs: 50, reconnectMaxMs: 150 });
    client = await connect(target, { limits: { heartbeat: 500 }, transport });
  },
  async consume(code: number, group: string, window: number, acks: boolean) {
    auto = acks;
    const consumption = client.consume(code, { group, window, ack: 'manual' }, (message) => {
      const { sequence, deliveries, redelivered } = message;
      got.push({ sequence, body: message.text(), deliveries, redelivered });
      if (auto) void message.ack().catch(() => {});
      else held.push(message);
    });
    await consumption.accepted;
  },
  /** Acknowledges the first ones that it holds; resolves with the code of each failure, or `ok`. */
  ack: (count: number) =>
    Promise.all(
      held.splice(0, count).map((message) =>
        message.ack().then(
          () => 'ok',
          (error) => (error instanceof TrunklineError ? error.code : String(error)),
        ),
      ),
    ),
  report: (): { got: Got[]; held: number } => ({ got, held: held.length }),
  close: () => client.close(),
});
