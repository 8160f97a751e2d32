import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigurationError, parseConfiguration } from '@trunkline/dispatcher';
import { readQueueOptions } from '../../../../dispatcher/dist/config/index.js';

function parse(services: object[], more: object = { dataDirectory: 'data' }) {
  const file = { listen: ['tcp://127.0.0.1:7400'], ...more, services };
  return parseConfiguration(new TextEncoder().encode(JSON.stringify(file)), { baseDirectory: '/etc/trunkline' })
    .configuration;
}

function problems(services: object[], more?: object): string[] {
  try {
    parse(services, more);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return error.problems.map(({ path, message }) => `${path}: ${message}`);
  }
}

test('queues stand beside the live services, with their defaults', () => {
  const { queues, services, dataDirectory } = parse([{ code: 1 }, { code: 2, kind: 'queue', maxBytes: '1KiB' }]);
  assert.equal(dataDirectory, '/etc/trunkline/data');
  assert.deepEqual(
    services.map(({ from }) => from),
    [1],
  );
  assert.deepEqual(queues, [
    {
      code: 2,
      name: '2',
      options: {
        storage: 'disk',
        maxMessages: 0,
        maxBytes: 1024,
        maxAge: 0,
        retain: 0,
        full: 'refuse',
        ackTimeout: 30_000,
        maxDeliveries: 0,
        deadLetter: 0,
        maxMessage: 50 * 1024 * 1024,
      },
    },
  ]);
});

test('what a queue cannot have is told at its place', () => {
  const expect = (service: object, pattern: RegExp, more?: object) => {
    const found = problems([{ code: 5, kind: 'queue', ...service }, { code: 9 }], more);
    assert.ok(
      found.some((line) => pattern.test(line)),
      `${pattern} in ${found}`,
    );
  };
  expect({ code: '5-6' }, /services\[0\]\.code: a queue has a single code/);
  expect({ keep: 'last' }, /services\[0\]\.keep: an option of live services only/);
  expect({ record: 5 }, /services\[0\]\.record: an option of live services only/);
  expect({ deadLetter: 5 }, /deadLetter: a queue cannot be its own/);
  expect({ deadLetter: 9 }, /deadLetter: no queue has the code 9/);
  expect({ maxAge: '600h' }, /maxAge: 600h is too long/);
  expect({ full: 'block' }, /full: must be "refuse" or "dropOldest"/);
  expect({}, /services\[0\]: a queue on disk needs dataDirectory/, {});
  assert.deepEqual(problems([{ code: 5, kind: 'queue', storage: 'memory' }], {}), []);
  assert.ok(problems([{ code: 1, storage: 'disk' }]).some((line) => /an option of queues/.test(line)));
  assert.ok(problems([{ code: 1, record: 7 }]).some((line) => /record: no queue has the code 7/.test(line)));
  const range = [
    { code: '1-2', record: { queue: 5, params: [1] } },
    { code: 5, kind: 'queue' },
  ];
  assert.ok(problems(range).some((line) => /params: which of the codes/.test(line)));
});

test('a queue may be larger than 2 GiB, a message may not', () => {
  const maxBytes = (value: unknown) => parse([{ code: 5, kind: 'queue', maxBytes: value }]).queues[0]!.options.maxBytes;
  assert.equal(maxBytes('100GiB'), 100 * 2 ** 30);
  assert.equal(maxBytes(Number.MAX_SAFE_INTEGER), Number.MAX_SAFE_INTEGER);
  assert.equal(readQueueOptions({ maxBytes: '3GiB' }).maxBytes, 3 * 2 ** 30);
  const refused = (options: object) => problems([{ code: 5, kind: 'queue', ...options }]).join();
  assert.match(refused({ maxBytes: '9999999999GiB' }), /maxBytes: 9999999999GiB is too large/);
  assert.match(refused({ maxBytes: 2 ** 53 }), /maxBytes/);
  assert.match(refused({ maxMessage: '3GiB' }), /maxMessage: 3GiB is too large/);
  assert.match(refused({ maxMessage: 2 ** 31 }), /maxMessage/);
  assert.throws(() => readQueueOptions({ maxMessage: '3GiB' }), { code: 'PARAMS_INVALID' });
  assert.throws(() => readQueueOptions({ maxBytes: '9999999999GiB' }), { code: 'PARAMS_INVALID' });
});
