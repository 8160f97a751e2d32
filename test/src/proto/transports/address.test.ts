import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Address, formatAddress, parseAddress, TrunklineError } from '@trunkline/proto';
import fc from 'fast-check';

const tcp = (host: string, port: number): Address => ({ scheme: 'tcp', host, port });

const dialable: [string, Address][] = [
  ['tcp://127.0.0.1:7400', tcp('127.0.0.1', 7400)],
  ['tcp://[::1]:1', tcp('::1', 1)],
  ['tcp://[2001:db8::7]:65535', tcp('2001:db8::7', 65535)],
  ['tcp://[::ffff:10.0.0.1]:7400', tcp('::ffff:10.0.0.1', 7400)],
  ['tcp://[fe80::1%eth0]:7400', tcp('fe80::1%eth0', 7400)],
  ['tcp://localhost:7400', tcp('localhost', 7400)],
  ['tcp://plant_7.example.com:7400', tcp('plant_7.example.com', 7400)],
  ['ipc:///run/trunkline/main', { scheme: 'ipc', path: '/run/trunkline/main' }],
  ['ipc://relative', { scheme: 'ipc', path: 'relative' }],
  [`ipc:///${'p'.repeat(106)}`, { scheme: 'ipc', path: `/${'p'.repeat(106)}` }],
];

const listenable: [string, Address][] = [
  ...dialable,
  ['tcp://*:7400', tcp('*', 7400)],
  ['tcp://*:*', tcp('*', 0)],
  ['tcp://127.0.0.1:0', tcp('127.0.0.1', 0)],
  ['tcp://[::]:*', tcp('::', 0)],
];

test('addresses that are valid', () => {
  for (const [text, address] of dialable) assert.deepEqual(parseAddress(text), address, text);
  for (const [text, address] of listenable) assert.deepEqual(parseAddress(text, { listen: true }), address, text);
});

const broken: [string, RegExp][] = [
  ['', /no scheme/],
  ['127.0.0.1:7400', /no scheme/],
  ['udp://127.0.0.1:7400', /scheme "udp" is unknown/],
  ['TCP://127.0.0.1:7400', /scheme "TCP" is unknown/],
  ['tcp://', /no port/],
  ['tcp://127.0.0.1', /no port/],
  ['tcp://:7400', /no host/],
  ['tcp://127.0.0.1:', /port ""/],
  ['tcp://127.0.0.1:70000', /port "70000" is not a number from 1 to 65535/],
  ['tcp://127.0.0.1:65536', /port "65536"/],
  ['tcp://127.0.0.1:-1', /port "-1"/],
  ['tcp://127.0.0.1:07400', /port "07400"/],
  ['tcp://127.0.0.1:0x10', /port "0x10"/],
  ['tcp://127.0.0.1:74 00', /port "74 00"/],
  ['tcp://127.0.0.1:7400/path', /port "7400\/path"/],
  ['tcp://256.0.0.1:7400', /not an IPv4/],
  ['tcp://1.2.3:7400', /not an IPv4/],
  ['tcp://010.0.0.1:7400', /not an IPv4/],
  ['tcp://::1:7400', /in brackets/],
  ['tcp://[::1:7400', /in brackets/],
  ['tcp://[:::1]:7400', /not an IPv6/],
  ['tcp://[1:2:3:4:5:6:7]:7400', /not an IPv6/],
  ['tcp://[1:2:3:4:5:6:7:8:9]:7400', /not an IPv6/],
  ['tcp://[1::2::3]:7400', /not an IPv6/],
  ['tcp://[12345::]:7400', /not an IPv6/],
  ['tcp://[127.0.0.1]:7400', /not an IPv6/],
  ['tcp://[]:7400', /not an IPv6/],
  ['tcp://-bad.example:7400', /not a host name/],
  ['tcp://a..b:7400', /not a host name/],
  ['tcp://user@host:7400', /not a host name/],
  [`tcp://${'a'.repeat(64)}:7400`, /not a host name/],
  ['ipc://', /no path/],
  ['ipc://*', /wildcard/],
  ['ipc://@name', /abstract/],
  ['ipc:///tmp/', /folder/],
  ['ipc:///tmp/a\0b', /NUL/],
  [`ipc:///${'p'.repeat(107)}`, /108 bytes, at most 107/],
  [`ipc:///${'é'.repeat(54)}`, /109 bytes, at most 107/],
];

test('addresses that are broken, each with its reason', () => {
  for (const [text, reason] of broken) {
    for (const listen of [false, true]) {
      assert.throws(
        () => parseAddress(text, { listen }),
        (error: unknown) =>
          error instanceof TrunklineError && error.code === 'ADDRESS_INVALID' && reason.test(error.message),
        text,
      );
    }
  }
});

test('what is for listening only is refused for dialling', () => {
  for (const text of ['tcp://*:7400', 'tcp://127.0.0.1:0', 'tcp://127.0.0.1:*']) {
    assert.throws(() => parseAddress(text), { code: 'ADDRESS_INVALID', message: /for listening only/ }, text);
  }
});

test('whatever is parsed reads the same when written again, and nothing else than a coded error is thrown', () => {
  const pieces = fc.constantFrom(
    'tcp://',
    'ipc://',
    '[',
    ']',
    ':',
    '::',
    '*',
    '0',
    '1',
    '.',
    'a',
    'f',
    '%',
    '/',
    '7400',
  );
  const texts = fc.oneof(
    fc.array(pieces, { maxLength: 10 }).map((parts) => parts.join('')),
    fc.string(),
  );
  fc.assert(
    fc.property(texts, (text) => {
      try {
        const address = parseAddress(text, { listen: true });
        assert.deepEqual(parseAddress(formatAddress(address), { listen: true }), address);
      } catch (error) {
        assert.ok(error instanceof TrunklineError && error.code === 'ADDRESS_INVALID', String(error));
      }
    }),
  );
});
