import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  encodeMessage,
  errorCodes,
  FIRST_APPLICATION_TYPE,
  Flag,
  HEADER_BYTES,
  headerFault,
  isData,
  OFFSET,
  Type,
} from '@trunkline/proto';
import protobuf from 'protobufjs';
import { schemaPath, toHex } from '../proto/fixtures.js';
import { filesUnder, read, rows, section } from './repository.js';

const document = read('proto/PROTOCOL.md');

test('every header field stands in PROTOCOL.md §3.1 with its offset and size, and no other', () => {
  const sizes: Record<string, number> = { u8: 1, u16: 2, u32: 4, u64: 8 };
  const written = rows(section(document, '### 3.1 Header'), /^\d+$/);
  assert.deepEqual(Object.fromEntries(written.map(([offset, , field]) => [field, Number(offset)])), OFFSET);
  let end = 0;
  for (const [offset, type] of written) {
    assert.equal(Number(offset), end, 'no hole between the fields');
    end += sizes[type!]!;
  }
  assert.equal(end, HEADER_BYTES);
});

test('the bytes of the example in §3.1 are what the encoder writes', () => {
  const example = /```\n([0-9a-f ]+)\n/.exec(section(document, '### 3.1 Header'))![1]!;
  const header = { type: Type.RESPONSE, flags: Flag.FINAL, code: 1001, line: 12, sequence: 42, generation: 3 };
  assert.equal(example.replaceAll(' ', ''), toHex(encodeMessage(header, {})));
});

test('every message type stands in §4 with its number, and no other', () => {
  const written = rows(section(document, '## 4 Message types'), /^\d+$/).map(([type, name]) => [name, Number(type)]);
  assert.deepEqual(Object.fromEntries(written), Type);
  assert.match(document, new RegExp(`\\| ${FIRST_APPLICATION_TYPE}\\.\\.255 \\| of the application`));
  const data = Object.values(Type).filter(isData);
  assert.deepEqual(data, [Type.RESPONSE, Type.PUBLISH], 'what §4 calls data');
});

test('every flag stands in §3.2 with its value, and no other', () => {
  const written = rows(section(document, '### 3.2 Flags'), /^\d+$/).map(([value, name]) => [name, Number(value)]);
  assert.deepEqual(Object.fromEntries(written), Flag);
});

test('every fault of a header stands in §3.4, in the order in which they are found', () => {
  const written = rows(section(document, '### 3.4 Batches'), /^`/).map(([name]) => name!.replaceAll('`', ''));
  const valid = encodeMessage({ type: Type.RESPONSE });
  const spoil: Record<string, (bytes: Uint8Array) => void> = {
    reserved: (bytes) => bytes.fill(1, OFFSET.reserved),
    meta: (bytes) => bytes.fill(1, OFFSET.meta, OFFSET.reserved),
    sequence: (bytes) => bytes.fill(255, OFFSET.sequence, OFFSET.generation),
    headerLength: (bytes) => bytes.fill(7, OFFSET.words, OFFSET.words + 1),
    type: (bytes) => bytes.fill(0, OFFSET.type, OFFSET.type + 1),
    version: (bytes) => bytes.fill(2, OFFSET.version, OFFSET.version + 1),
  };
  // spoiled one after the other from the last fault to the first, the newest is the one that is found
  const bytes = valid.slice();
  const found = Object.entries(spoil).map(([, change]) => {
    change(bytes);
    return headerFault(bytes, 0, bytes.length, 100);
  });
  assert.deepEqual(found, Object.keys(spoil));
  assert.equal(headerFault(bytes, 0, bytes.length, 31), 'tooLarge');
  bytes[OFFSET.length] = 33;
  assert.equal(headerFault(bytes, 0, bytes.length, 31), 'length');
  assert.equal(headerFault(bytes, 0, 31, 31), 'short');
  assert.deepEqual(written, ['short', 'length', 'tooLarge', ...Object.keys(spoil).reverse()]);
});

test('every error code stands in §8 and no other, with its meaning', () => {
  const written = rows(section(document, '## 8 Errors'), /^`[A-Z_]+`$/);
  const names = written.map(([name]) => name!.replaceAll('`', ''));
  assert.deepEqual(names, Object.keys(errorCodes));
  for (const [name, , , meaning] of written) {
    const own = errorCodes[name!.replaceAll('`', '') as keyof typeof errorCodes];
    assert.ok(meaning!.includes(own), `${name}: "${meaning}" does not say "${own}"`);
  }
});

test('every protobuf message of the schema has its place in the document, and every payload named there exists', () => {
  const schema = protobuf.loadSync(schemaPath).lookup('trunkline') as protobuf.Namespace;
  const declared = schema.nestedArray.filter((one) => one instanceof protobuf.Type).map((one) => one.name);
  const inside = ['Value', 'Start'];
  for (const name of declared) {
    if (!inside.includes(name)) assert.ok(document.includes(`\`${name}\``), `${name} is not in PROTOCOL.md`);
  }
  const payloads = rows(section(document, '## 4 Message types'), /^\d+$/).flatMap((cells) =>
    [...(cells[4] ?? '').matchAll(/`([A-Z]\w+)`/g)].map(([, name]) => name!),
  );
  assert.deepEqual(
    payloads.filter((name) => !declared.includes(name)),
    [],
  );
});

test('the requirements are numbered from 1 on, each once, and what cites a section or a requirement cites one that exists', () => {
  const numbers = [...document.matchAll(/\*\*(?:[^*]*\. )?M-(\d+)\*\*/g)].map(([, number]) => Number(number));
  assert.deepEqual(
    numbers,
    numbers.map((_, index) => index + 1),
  );
  const sections = new Set([...document.matchAll(/^#{2,3} (\d+(?:\.\d+)?) /gm)].map(([, number]) => number));
  const cited = [...document.matchAll(/§(\d+(?:\.\d+)?)/g)].map(([, number]) => number!);
  for (const folder of ['proto', 'dispatcher', 'publisher-sdk', 'subscriber-sdk', 'cli', 'docs', 'test/src']) {
    for (const ending of ['.ts', '.md', '.proto']) {
      for (const path of filesUnder(folder, ending)) {
        const text = read(path);
        cited.push(...[...text.matchAll(/PROTOCOL\.md §(\d+(?:\.\d+)?)/g)].map(([, number]) => number!));
        for (const [, number] of text.matchAll(/PROTOCOL\.md M-(\d+)/g)) {
          assert.ok(numbers.includes(Number(number)), `${path} cites M-${number}`);
        }
      }
    }
  }
  assert.deepEqual(
    cited.filter((number) => !sections.has(number)),
    [],
  );
});

test('the fourteen rules are there, in order', () => {
  const rules = [...section(document, '### 7.1 The rules').matchAll(/^(\d+)\. \*\*/gm)].map(([, number]) =>
    Number(number),
  );
  assert.deepEqual(rules, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
});
