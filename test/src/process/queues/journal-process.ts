// A member of a group that writes down what it gets, and what was acknowledged for certain, before it goes on: what it
// wrote is there after kill -9.
import { openSync, writeSync } from 'node:fs';
import { ZmtpTransport } from '@trunkline/proto/zmtp';
import { connect } from '@trunkline/subscriber';
import { serve } from '../fixtures/serve.js';

serve({
  async run(target: string, code: number, group: string, window: number, journal: string) {
    const file = openSync(journal, 'a');
    const write = (...words: readonly (string | number | bigint)[]) =>
      writeSync(file, `${[process.hrtime.bigint(), group, ...words].join(' ')}\n`);
    const transport = new ZmtpTransport({ reconnectMs: 50, reconnectMaxMs: 150 });
    const client = await connect(target, { limits: { heartbeat: 500 }, transport });
    const consumption = client.consume(code, { group, window, ack: 'manual' }, (message) => {
      const { sequence, deliveries, redelivered } = message;
      write('got', sequence, deliveries, redelivered ? 1 : 0, message.text());
      const ack = () =>
        message.ack().then(
          () => write('acked', sequence),
          () => {},
        );
      // some are held for a while, so that there is always something out
      if (sequence % 3 === 0) setTimeout(ack, sequence % 30);
      else void ack();
    });
    await consumption.accepted;
  },
});
