import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TrunklineError } from '@trunkline/proto';
import { Parts } from './support.js';

const failures: Record<string, () => unknown> = {
  throws: () => {
    throw new RangeError('no');
  },
  'throws nothing at all': () => {
    throw undefined;
  },
  rejects: () => Promise.reject(new RangeError('no')),
  'rejects later': async () => {
    await new Promise((resolve) => setImmediate(resolve));
    throw new RangeError('no');
  },
  'throws an error of ours': () => {
    throw new TrunklineError('CLOSED');
  },
  'returns a thenable that throws': () =>
    Object.defineProperty({}, 'then', {
      get: () => {
        throw new RangeError('no');
      },
    }),
};

for (const [what, fail] of Object.entries(failures)) {
  test(`F25: a handler that ${what} on the second of five items is told, and the rest arrives`, async () => {
    const parts = await Parts.start([{ code: 100 }, { code: 200 }]);
    parts.provider().provide({ from: 100, to: 200 }, (subscription) => {
      for (let item = 1; item <= 5; item++) subscription.respond(item);
    });
    const client = parts.client();
    const got: unknown[] = [];
    const beside: unknown[] = [];
    const errors: TrunklineError[] = [];
    const subscription = client.subscribe(100, {}, (message) => {
      got.push(message.json());
      return message.json() === 2 ? fail() : undefined;
    });
    subscription.on('error', (error) => errors.push(error));
    client.subscribe(200, {}, (message) => void beside.push(message.json()));
    await parts.advance(100);
    assert.deepEqual(got, [1, 2, 3, 4, 5]);
    assert.deepEqual(beside, [1, 2, 3, 4, 5]);
    assert.deepEqual(
      errors.map(({ code }) => code),
      ['HANDLER_FAILED'],
    );
    assert.deepEqual([subscription.state, client.state], ['live', 'connected']);
  });
}

test('F25: a provider handler that throws refuses its own request only', async () => {
  const parts = await Parts.start([{ code: 100 }]);
  const provider = parts.provider();
  const errors: unknown[] = [];
  provider.on('error', ({ code }) => errors.push(code));
  provider.provide(100, (subscription) => {
    if (subscription.params === 'bad') throw new RangeError('no');
    subscription.respond('good');
    return () => {
      throw new RangeError('nor while stopping');
    };
  });
  const client = parts.client();
  const bad = client.subscribe(100, { params: 'bad' });
  bad.on('error', () => {});
  const good = client.subscribe(100, { params: 'good' });
  const got: string[] = [];
  good.on('message', (message) => got.push(message.text()));
  await assert.rejects(Promise.all([bad.accepted(), parts.settle()]), { code: 'HANDLER_FAILED' });
  await parts.settle();
  assert.deepEqual(got, ['good']);
  await good.unsubscribe();
  await parts.settle();
  assert.deepEqual(errors, ['HANDLER_FAILED', 'HANDLER_FAILED']);
  assert.equal(provider.state, 'connected');
});
