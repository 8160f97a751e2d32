import assert from 'node:assert/strict';
import { lookup } from 'node:dns/promises';
import type { TestContext } from 'node:test';
import { until } from '../../support/wait.js';
import { echo, numbered, Record, testEnds, testKinds, transport } from './record.js';

const hosts: [string, RegExp][] = [
  ['tcp://127.0.0.1:0', /^tcp:\/\/127\.0\.0\.1:\d+$/],
  ['tcp://*:*', /^tcp:\/\/\*:\d+$/],
  ['tcp://localhost:0', /^tcp:\/\/localhost:\d+$/],
  ['tcp://[::1]:0', /^tcp:\/\/\[::1\]:\d+$/],
  ['tcp://[::]:0', /^tcp:\/\/\[::\]:\d+$/],
];

testEnds(
  'F41: every kind of host is listened at, and named hosts are dialled by IPv4 and IPv6',
  async (t, listens, dials) => {
    const families = new Set((await lookup('localhost', { all: true })).map((entry) => entry.family));
    for (const [text, expected] of hosts) {
      const server = new Record();
      server.handle = echo;
      const listener = await transport(t, listens).listen(text, server);
      assert.match(listener.address, expected);
      const port = listener.address.split(':').at(-1);
      const targets = text.includes('[::1]') ? [`tcp://[::1]:${port}`] : [`tcp://127.0.0.1:${port}`];
      if (text.includes('[::]')) targets.push(`tcp://[::1]:${port}`);
      if (!text.includes('[::1]') || families.has(6)) targets.push(`tcp://localhost:${port}`);
      for (const target of targets) {
        const client = new Record();
        const link = transport(t, dials, { reconnectMs: 5 }).dial(target, client);
        await until(() => client.up, `${text} is reached by ${target}`);
        link.send(numbered(7));
        await until(() => client.batches.length === 1, 'the batch came back');
        link.close();
      }
    }
  },
);

testKinds('wrong addresses and taken ports are coded errors', async (t, kind) => {
  const made = transport(t, kind);
  const { address } = await made.listen('tcp://127.0.0.1:0', new Record());
  await assert.rejects(made.listen(address, new Record()), { code: 'ADDRESS_IN_USE', message: new RegExp(address) });
  await assert.rejects(made.listen('tcp://127.0.0.1:70000', new Record()), { code: 'ADDRESS_INVALID' });
  await assert.rejects(made.listen('tcp://no-such-host.invalid:0', new Record()), { code: 'ADDRESS_INVALID' });
  await assert.rejects(made.listen('tcp://192.0.2.1:0', new Record()), { code: 'ADDRESS_INVALID' });
  assert.throws(() => made.dial('tcp://127.0.0.1:0', new Record()), { code: 'ADDRESS_INVALID' });
  assert.throws(() => made.dial('tcp://127.0.0.1', new Record()), { code: 'ADDRESS_INVALID' });
});

testKinds('an unknown host name is looked up again and again, without an event', async (t, kind) => {
  const client = new Record();
  const warned: string[] = [];
  const log = { debug() {}, info() {}, warn: (_: object, message: string) => void warned.push(message), error() {} };
  const link = transport(t, kind, { reconnectMs: 1, reconnectMaxMs: 2, log }).dial(
    'tcp://no-such-host.invalid:1',
    client,
  );
  await until(() => warned.length >= 3, 'it was tried three times');
  link.close();
  assert.deepEqual(client.told, []);
  assert.deepEqual(new Set(warned), new Set(['the host name is unknown']));
});

testKinds('options out of range are refused', (_t, kind) => {
  const wrong = [
    { maxBatchBytes: 31 },
    { stepBatches: 0 },
    { stepBytes: 1.5 },
    { lingerMs: -1 },
    { reconnectMs: 2 ** 31 },
    { handshakeTimeoutMs: 0 },
    { connectTimeoutMs: '5' as unknown as number },
  ];
  const nowhere = { after() {} } as unknown as TestContext;
  for (const options of wrong) assert.throws(() => transport(nowhere, kind, options), { code: 'OPTION_INVALID' });
});
