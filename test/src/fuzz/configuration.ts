import assert from 'node:assert/strict';
import { ConfigurationError, ForwardingTable, parseConfiguration } from '@trunkline/dispatcher';

const valid = JSON.stringify(
  {
    listen: ['tcp://127.0.0.1:7400', 'ipc:///tmp/fuzz.sock'],
    defaults: { keep: { ring: 10 }, resendAfter: '2s', limits: { maxParams: '4KiB' } },
    services: [
      { code: 1001, name: 'quotes é 😀', providers: ['tcp://127.0.0.1:7501'], sendHandler: 'own', linger: '0s' },
      { code: '5000-5999', returnHandlers: ['latest'], overflow: ['block'], keep: { lastPerKey: 5 }, latestRate: 0.5 },
      { code: '5100-5199', probeAfter: '0s', onProbe: 'log' },
    ],
    modules: {
      sendHandlers: { own: { path: './own.mjs', options: { a: [1, null, true, 1e-3] } } },
      onProbe: { log: { path: './log.mjs' } },
      messageTypes: { 130: { path: './echo.mjs' } },
    },
    session: { heartbeat: '1s', maxMessage: '1MiB', receiveWindow: 65536 },
    tokens: ['secret'],
    drain: '5s',
    log: { level: 'warn' },
  },
  null,
  1,
);

const pieces = [
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '"',
  '\\u',
  '//',
  '/*',
  '0',
  '-',
  '0x64',
  'null',
  '1e999',
  '"__proto__":',
  '\n',
  '\ufeff',
];
const encoder = new TextEncoder();

/**
 * Changes bytes of a valid file and parses what comes out: only a ConfigurationError may be thrown, and what is
 * accepted is JSON and makes a forwarding table. `random` is uniform in [0, 1).
 */
export function fuzzConfiguration(random: () => number, rounds: number): void {
  for (let round = 0; round < rounds; round++) {
    let bytes = encoder.encode(valid);
    const changes = 1 + Math.floor(random() * 4);
    for (let change = 0; change < changes; change++) bytes = mutate(bytes, random);
    tryBytes(bytes);
  }
}

function tryBytes(bytes: Uint8Array): void {
  try {
    const { configuration } = parseConfiguration(bytes, { baseDirectory: '/', moduleExists: () => true });
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    const { services } = JSON.parse(text) as { services: unknown[] };
    assert.equal(new ForwardingTable(configuration.services).services.length, services.length);
  } catch (error) {
    const shown = Buffer.from(bytes).toString('base64');
    assert.ok(error instanceof ConfigurationError, `${String(error)} for the bytes (base64) ${shown}`);
    assert.ok(
      error.problems.length > 0 && error.problems.every(({ line, column }) => (line ?? 0) > 0 && (column ?? 0) > 0),
    );
  }
}

function mutate(bytes: Uint8Array, random: () => number): Uint8Array<ArrayBuffer> {
  const at = Math.floor(random() * bytes.length);
  const length = Math.floor(random() * 20);
  const piece = encoder.encode(pieces[Math.floor(random() * pieces.length)] ?? '');
  switch (Math.floor(random() * 6)) {
    case 0: // another byte
      return splice(bytes, at, 1, Uint8Array.of(Math.floor(random() * 256)));
    case 1: // some bytes gone
      return splice(bytes, at, length, new Uint8Array());
    case 2: // a piece of syntax in between
      return splice(bytes, at, 0, piece);
    case 3: // a piece of syntax instead
      return splice(bytes, at, piece.length, piece);
    case 4: // some bytes twice
      return splice(bytes, at, 0, bytes.subarray(at, at + length * 4));
    default: // cut off
      return splice(bytes, at, random() < 0.2 ? bytes.length : 2, new Uint8Array());
  }
}

function splice(bytes: Uint8Array, at: number, removed: number, added: Uint8Array): Uint8Array<ArrayBuffer> {
  const rest = bytes.subarray(Math.min(bytes.length, at + removed));
  const result = new Uint8Array(at + added.length + rest.length);
  result.set(bytes.subarray(0, at), 0);
  result.set(added, at);
  result.set(rest, at + added.length);
  return result;
}
