import assert from 'node:assert/strict';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import {
  checkFiles,
  diffConfigurations,
  keptCurve,
  parseConfiguration,
  readConfiguration,
} from '@trunkline/dispatcher';
import { curveKeyPair } from '@trunkline/proto/zmq';
import { temporaryFolder } from '../../support/daemon.js';
import { writeKeys } from '../../support/keys.js';
import { expectLines, linesOf, minimal, parse } from './helpers.js';

const own = curveKeyPair();
const [one, two] = [curveKeyPair().publicKey, curveKeyPair().publicKey];

class Files {
  readonly folder: string;
  readonly file: string;

  constructor(context: TestContext) {
    this.folder = temporaryFolder(context);
    this.file = join(this.folder, 'trunkline.json');
    writeKeys(this.folder, { own, allowed: [one, two] });
    this.write();
  }

  write(curve: object | undefined = {}, more: object = {}): void {
    const names = {
      publicKeyFile: 'dispatcher.public',
      secretKeyFile: './dispatcher.secret',
      allowedKeysFile: 'allowed.keys',
    };
    writeFileSync(this.file, JSON.stringify({ ...minimal, curve: { ...names, ...curve }, ...more }));
  }

  put(name: string, text: string): void {
    writeFileSync(join(this.folder, name), text);
  }

  async lines(): Promise<string[]> {
    const [{ problems } = { problems: [] }] = await checkFiles([this.file]);
    assert.ok(!JSON.stringify(problems).includes(own.secretKey), 'no secret key is shown');
    return problems.map(({ path, message }) => `${path}: ${message.replaceAll(this.folder, '.')}`);
  }
}

test('key files are read beside the configuration; without a list there is none', async (context) => {
  const files = new Files(context);
  const curve = async () => (await readConfiguration(files.file)).configuration.curve;
  assert.deepEqual(await curve(), { ...own, allowedKeys: [one, two] });
  files.write({ allowedKeysFile: undefined });
  assert.deepEqual(await curve(), { ...own, allowedKeys: undefined });
  assert.equal(parse(minimal).curve, undefined);
});

test('every key file that is wrong is told at once, at the place that names it', async (context) => {
  const files = new Files(context);
  rmSync(join(files.folder, 'dispatcher.public'));
  files.put('dispatcher.secret', `${own.secretKey}0\n`);
  files.put('allowed.keys', `${one}\n\nnonsense\n`);
  expectLines(await files.lines(), [
    '$.curve.publicKeyFile: ./dispatcher.public: there is no such file',
    '$.curve.secretKeyFile: ./dispatcher.secret: line 1: this is no key of 40 characters (Z85)',
    '$.curve.allowedKeysFile: ./allowed.keys: line 3: this is no key of 40 characters (Z85)',
  ]);
});

test('a folder, a list of nobody, text that is no UTF-8, two keys and none are refused', async (context) => {
  const files = new Files(context);
  mkdirSync(join(files.folder, 'folder'));
  files.write({ publicKeyFile: 'folder' });
  expectLines(await files.lines(), ['$.curve.publicKeyFile: ./folder: this is a folder, not a file']);
  files.write();
  files.put('allowed.keys', '# nobody yet\n');
  expectLines(await files.lines(), ['$.curve.allowedKeysFile: the file has no key: nobody could come in']);
  writeFileSync(join(files.folder, 'allowed.keys'), Uint8Array.of(0xff, 0xfe, 0x30, 0));
  expectLines(await files.lines(), [/allowedKeysFile: .*UTF-16/]);
  writeKeys(files.folder, { own, allowed: [one] });
  files.put('dispatcher.public', `${own.publicKey}\n${one}\n`);
  files.put('dispatcher.secret', '');
  expectLines(await files.lines(), [
    '$.curve.publicKeyFile: ./dispatcher.public: line 1: the file has 2 keys instead of one',
    '$.curve.secretKeyFile: ./dispatcher.secret: line 1: the file has 0 keys instead of one',
  ]);
});

test('a pair has to belong together', async (context) => {
  const files = new Files(context);
  files.put('dispatcher.public', `${one}\n`);
  expectLines(await files.lines(), ['$.curve.secretKeyFile: the secret key does not belong to the public key']);
});

test('why a key file cannot be read stands in the problem', () => {
  const readKeyFile = () => {
    throw new Error('the file may not be read (permission denied)');
  };
  const bytes = new TextEncoder().encode(
    JSON.stringify({ ...minimal, curve: { publicKeyFile: 'a', secretKeyFile: 'b' } }),
  );
  assert.throws(
    () => parseConfiguration(bytes, { baseDirectory: '/keys', readKeyFile }),
    /\$\.curve\.publicKeyFile: \/keys\/a: the file may not be read \(permission denied\)/,
  );
});

test('where no file is read a configuration with keys is refused, not taken without them', () => {
  const curve = { publicKeyFile: 'a', secretKeyFile: 'b' };
  expectLines(linesOf({ ...minimal, curve }), [
    '$.curve.publicKeyFile: /etc/trunkline/a: key files are not read here',
    '$.curve.secretKeyFile: /etc/trunkline/b: key files are not read here',
  ]);
  expectLines(linesOf({ ...minimal, curve: { publicKeyFile: 'a' } }), [
    '$.curve: the key "secretKeyFile" is missing',
    /not read here/,
  ]);
});

const first = 'tcp://127.0.0.1:7501';
const second = 'tcp://127.0.0.1:7502';

test('providers are addresses, some with the key that they must have', async (context) => {
  const files = new Files(context);
  const services = [
    { code: 1, providers: [{ address: first, serverKey: one }, second] },
    { code: 2, providers: [first, { address: second }] },
  ];
  files.write({}, { services });
  const { configuration } = await readConfiguration(files.file);
  assert.deepEqual(
    configuration.services.map(({ providers }) => providers),
    [
      [first, second],
      [first, second],
    ],
  );
  assert.deepEqual(configuration.serverKeys, { [first]: one });
});

test('a key of a provider that is none, or has another one elsewhere, or comes without curve, is refused', async (context) => {
  const files = new Files(context);
  files.write(
    {},
    {
      defaults: { providers: [{ address: first, serverKey: one }] },
      services: [
        { code: 1, providers: [{ address: first, serverKey: two }] },
        { code: 2, providers: [{ address: second, serverKey: 'short' }] },
        { code: 3, providers: [second, { address: second, serverKey: two }] },
        { code: 4, providers: [{ serverKey: one }, { address: 'tcp://x', key: one }] },
      ],
    },
  );
  expectLines(await files.lines(), [
    '$.services[0].providers[0].serverKey: the same address has another server key at $.defaults.providers[0].serverKey (line 1)',
    '$.services[1].providers[0].serverKey: must be a public key of 40 characters (Z85)',
    '$.services[2].providers[1].address: the same address is already at $.services[2].providers[0] (line 1)',
    '$.services[2].providers[1].serverKey: the same address has another server key at $.services[1].providers[0].serverKey (line 1)',
    '$.services[3].providers[0]: the key "address" is missing',
    /services\[3\]\.providers\[1\]\.address: .*invalid/,
    /services\[3\]\.providers\[1\]\.key: unknown key/,
  ]);
  expectLines(linesOf({ ...minimal, services: [{ code: 1, providers: [{ address: first, serverKey: one }] }] }), [
    '$.services[0].providers[0].serverKey: a server key needs "curve": the own pair of keys',
  ]);
});

test('a token is a text, and never shown', () => {
  assert.equal(parse({ ...minimal, token: 'secret' }).token, 'secret');
  assert.equal(parse(minimal).token, '');
  for (const token of ['', 5]) expectLines(linesOf({ ...minimal, token }), ['$.token: must be a text']);
});

test('a reload applies the list and the tokens; the pair, and what is switched on or off, waits for a restart', () => {
  const bare = parse(minimal);
  const base = { ...bare, curve: { ...own, allowedKeys: [one, two] } };
  const fresh = curveKeyPair();
  const diff = (curve: typeof base.curve | undefined | object, more: object = {}) => {
    const { live, restart, unchanged } = diffConfigurations(base, { ...base, curve, ...more } as typeof base);
    return { live, restart, unchanged };
  };
  assert.deepEqual(diff({ ...own, allowedKeys: [two, one, one] }), { live: [], restart: [], unchanged: true });
  assert.deepEqual(diff({ ...own, allowedKeys: [two] }).live, ['curve.allowedKeysFile']);
  assert.deepEqual(diff({ ...fresh, allowedKeys: [two] }).restart, ['curve.publicKeyFile', 'curve.secretKeyFile']);
  assert.deepEqual(diff({ ...own, allowedKeys: undefined }).restart, ['curve.allowedKeysFile']);
  assert.deepEqual(diff(undefined).restart, ['curve']);
  assert.deepEqual(diffConfigurations(bare, base).restart, ['curve']);
  assert.deepEqual(diff(base.curve, { token: 'x', serverKeys: { [first]: one } }).live, ['token', 'serverKey']);

  assert.deepEqual(keptCurve(base.curve, { ...fresh, allowedKeys: [two] }), { ...own, allowedKeys: [two] });
  assert.deepEqual(keptCurve(base.curve, { ...own, allowedKeys: undefined }), base.curve);
  assert.deepEqual(keptCurve(base.curve, undefined), base.curve);
  assert.equal(keptCurve(undefined, base.curve), undefined);
});
