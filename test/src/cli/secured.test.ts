import assert from 'node:assert/strict';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { publicKeyOf } from '@trunkline/proto/keys';
import { curveKeyPair } from '@trunkline/proto/zmq';
import { trunkline } from '../support/command.js';
import { startDaemon, temporaryFolder } from '../support/daemon.js';
import { writeKeys } from '../support/keys.js';

test('keygen prints a pair, or writes one that only its owner reads, over nothing that is there', async (context) => {
  const folder = temporaryFolder(context);
  const run = async (...args: string[]) => {
    const command = trunkline(context, ['keygen', ...args], { cwd: folder });
    return { exit: await command.exited, lines: command.lines, err: command.err };
  };
  const { lines } = await run();
  const [publicKey, secretKey] = lines.map((line) => line.split(' ')[1]);
  assert.ok(publicKey !== undefined);
  assert.equal(publicKeyOf(secretKey), publicKey);
  const written = await run('--out', 'mine');
  assert.deepEqual([written.exit, written.lines.length], [0, 1]);
  assert.equal(statSync(join(folder, 'mine.secret')).mode & 0o777, 0o600);
  const again = await run('--out', 'mine');
  assert.equal(again.exit, 1);
  assert.match(again.err, /mine\.secret/);
});

test('commands come in with keys and a token, from options or the environment, and are told what is wrong', async (context) => {
  const folder = temporaryFolder(context);
  const [server, mine, other] = [curveKeyPair(), curveKeyPair(), curveKeyPair()];
  const keyFile = (name: string, key: string) => {
    writeFileSync(join(folder, name), `${key}\n`);
    return join(folder, name);
  };
  const [secret, wrong] = [keyFile('mine', mine.secretKey), keyFile('other', other.secretKey)];
  const { curve } = writeKeys(folder, { own: server, allowed: [mine.publicKey] });
  const daemon = await startDaemon(context, { services: [{ code: 3001 }], curve, tokens: ['right'] });
  const env = {
    TRUNKLINE_DISPATCHER: daemon.address,
    TRUNKLINE_CURVE_SERVER_KEY: server.publicKey,
    TRUNKLINE_CURVE_SECRET_KEY_FILE: secret,
    TRUNKLINE_TOKEN: 'right',
  };
  const provider = trunkline(context, ['provide', '3001', '--', 'echo', 'hello'], { env });
  await provider.until(() => provider.out.includes('-- providing'), 'it provides');
  const run = async (args: string[], more: Record<string, string> = env) => {
    const command = trunkline(context, args, { env: { TRUNKLINE_DISPATCHER: daemon.address, ...more } });
    return [await command.exited, command.out + command.err] as const;
  };
  const options = ['--curve-server-key', server.publicKey, '--curve-secret-key-file', secret, '--token', 'right'];
  const cases: [Promise<readonly [unknown, string]>, number, RegExp][] = [
    [run(['sub', '3001', '--curve-public-key', mine.publicKey]), 0, /hello/],
    [run(['services', ...options], {}), 0, /3001/],
    [run(['status'], { ...env, TRUNKLINE_CURVE_SECRET_KEY_FILE: wrong }), 1, /HANDSHAKE_REFUSED/],
    [run(['request', '3001'], { ...env, TRUNKLINE_CURVE_SERVER_KEY: other.publicKey }), 1, /HANDSHAKE_REFUSED/],
    [run(['services', '--token', 'none']), 3, /UNAUTHENTICATED/],
    [run(['status', '--curve-server-key', 'short']), 2, /--curve-server-key must be a key/],
    [run(['status', '--curve-public-key', other.publicKey]), 2, /does not belong to the public key/],
    [run(['status', '--curve-secret-key-file', join(folder, 'none')]), 2, /no such file/],
    [run(['status', '--curve-secret-key-file', secret], {}), 2, /need --curve-server-key/],
  ];
  for (const [running, exit, says] of cases) {
    const [ended, text] = await running;
    assert.match(text, says);
    assert.equal(ended, exit, text);
    assert.ok(!text.includes(mine.secretKey));
  }
});
