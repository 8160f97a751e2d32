import assert from 'node:assert/strict';
import { test } from 'node:test';
import { curveKeyBytes, parseKey, parseKeys, publicKeyOf } from '@trunkline/proto/keys';
import { curveKeyPair, z85 } from '@trunkline/proto/zmq';
import fc from 'fast-check';

test('the bytes of a key are read back, and nothing else is a key', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
      assert.deepEqual(curveKeyBytes(z85(bytes)), new Uint8Array(bytes));
    }),
  );
  const { publicKey } = curveKeyPair();
  // five # are 85^5 - 1, which no four bytes hold
  const beyond = `#####${publicKey.slice(5)}`;
  for (const wrong of ['', publicKey.slice(1), `${publicKey}0`, `~${publicKey.slice(1)}`, beyond, 5, undefined]) {
    assert.equal(curveKeyBytes(wrong), undefined, String(wrong));
  }
});

test('the public key that ZeroMQ makes is the one that belongs to the secret key', () => {
  for (let round = 0; round < 20; round++) {
    const { publicKey, secretKey } = curveKeyPair();
    assert.equal(publicKeyOf(secretKey), publicKey);
  }
  assert.equal(publicKeyOf('none'), undefined);
});

test('key files have one key a line, with comments', () => {
  const [one, two] = [curveKeyPair().publicKey, curveKeyPair().publicKey];
  const text = `\ufeff# ours\r\n\r\n  ${one}\t# the first # one\r\n#${two}\r\n${two}`;
  assert.deepEqual(parseKeys(text), { keys: [one, two] });
  assert.deepEqual(parseKeys('# nobody\n'), { keys: [] });
  assert.deepEqual(parseKey(`# mine\n${one}\n`), { key: one });
});

test('no key begins with #, so a comment is never one', () => {
  const key = `#0000${curveKeyPair().publicKey.slice(5)}`;
  assert.equal(curveKeyBytes(key), undefined);
  assert.deepEqual(parseKeys(`${key}\n`), { keys: [] });
});

test('what is no key is told by its line and never shown', () => {
  const { publicKey, secretKey } = curveKeyPair();
  const fault = { line: 2, message: 'this is no key of 40 characters (Z85)' };
  // one digit short; a # at the front would make it a comment
  const short = `0${secretKey.slice(2)}`;
  for (const wrong of [short, `${secretKey} ${publicKey}`, `${secretKey}x`]) {
    assert.deepEqual(parseKeys(`${publicKey}\n${wrong}\n`), fault);
  }
  assert.deepEqual(parseKey(`${publicKey}\n${publicKey}\n`), {
    line: 1,
    message: 'the file has 2 keys instead of one',
  });
  assert.deepEqual(parseKey(''), { line: 1, message: 'the file has 0 keys instead of one' });
});
