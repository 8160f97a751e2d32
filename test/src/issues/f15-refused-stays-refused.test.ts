import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TrunklineError } from '@trunkline/proto';
import { FRONT, Parts, record } from './support.js';

const requests: Record<string, [code: number, options: object, expected: string]> = {
  'an unknown code': [999, {}, 'UNKNOWN_SERVICE'],
  'what the provider refuses': [100, {}, 'FORBIDDEN'],
  'a bad filter': [100, { filter: 'key ==' }, 'FILTER_INVALID'],
  'a return handler that is none': [100, { return: 'nonsense' }, 'RETURN_HANDLER_NOT_ALLOWED'],
};

for (const [what, [code, options, expected]] of Object.entries(requests)) {
  test(`F15: ${what} is refused for good; a reconnect does not ask again`, async () => {
    const parts = await Parts.start([{ code: 100 }]);
    parts.provider().provide(100, () => {
      throw new TrunklineError('FORBIDDEN', 'not you');
    });
    const client = parts.client();
    const subscription = client.subscribe(code, options);
    const said = record(subscription);
    await parts.settle();
    assert.deepEqual(said, [`error ${expected}`, `end ${expected}`]);
    await parts.made.restart();
    parts.wire.length = 0;
    await parts.advance(120_000);
    assert.equal(client.state, 'connected');
    assert.equal(parts.sent(FRONT, 'REQUEST'), 0);
    await subscription.unsubscribe();
    await client.close();
    await parts.settle();
    assert.equal(said.length, 2);
  });
}
