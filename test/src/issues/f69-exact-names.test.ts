import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Parts } from './support.js';

// The rule (docs/filters.md): text is compared by code points, exactly; no case folding, no normalisation.
const pairs = [
  ['Price', 'price'],
  ['STRASSE', 'straße'],
  ['\u00e9', 'e\u0301'],
  ['I', 'ı'],
  ['\u{1d400}', 'A'],
] as const;

for (const [one, other] of pairs) {
  test(`F69: ${one} and ${other} are two names: as attribute, key, member of the body and param`, async () => {
    const parts = await Parts.start([{ code: 100, keep: { lastPerKey: 10 } }]);
    let asked = 0;
    parts.provider().provide(100, (subscription) => {
      asked++;
      subscription.respond({ [one]: 1, [other]: 2 }, { key: one, attrs: { [one]: 1, [other]: 2 } });
      subscription.respond({ [one]: 3 }, { key: other, attrs: { [one]: 3 } });
    });
    const client = parts.client();
    const got: Record<string, unknown[]> = {};
    const subscribe = (filter: string) => {
      const items: unknown[] = [];
      got[filter] = items;
      client.subscribe(
        100,
        { filter },
        (message) => void items.push(message.key, message.json(), { ...message.attrs }),
      );
    };
    const text = JSON.stringify(other);
    for (const filter of ['', `attrs[${text}] == 2`, `body[${text}] == 2`, `key == ${text}`]) subscribe(filter);
    await parts.settle();
    const first = [one, { [one]: 1, [other]: 2 }, { [one]: 1, [other]: 2 }];
    const second = [other, { [one]: 3 }, { [one]: 3 }];
    assert.deepEqual(Object.values(got), [[...first, ...second], first, first, second]);
    // and both are kept, each under its own key
    const late: unknown[] = [];
    parts.client().subscribe(100, {}, (message) => void late.push(message.key));
    await parts.settle();
    assert.deepEqual(late, [one, other]);
    asked = 0;
    for (const name of [one, other]) client.subscribe(100, { params: { [name]: 1 } });
    for (const value of [one, other]) client.subscribe(100, { params: value });
    await parts.settle();
    assert.equal(asked, 4);
  });
}
