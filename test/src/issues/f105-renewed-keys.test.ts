import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import type { TrunklineError } from '@trunkline/proto';
import { curveKeyPair } from '@trunkline/proto/zmq';
import { bind, connect as connectProvider } from '@trunkline/publisher';
import { connect } from '@trunkline/subscriber';
import { writeKeys } from '../support/keys.js';
import { until } from '../support/wait.js';
import { folder, quiet, Real } from './real.js';
import { known, other, secured, server } from './secured.js';

test('F105: a key that is taken away leaves what runs; a new session with it is refused, and told; a new key comes in', async (t) => {
  const { transport, address, options } = await secured(t);
  const provider = await connectProvider(address, options(known));
  provider.provide(100, (subscription) => subscription.respond('item'));
  const mine = options(known);
  const client = await connect(address, mine);
  const errors: TrunklineError[] = [];
  client.on('error', (error) => errors.push(error));
  transport.setCurve({ ...server, allowedKeys: [other.publicKey] });
  assert.equal((await new Promise<{ text(): string }>((got) => client.subscribe(100, {}, got))).text(), 'item');
  await assert.rejects(connect(address, options(known)), { code: 'HANDSHAKE_REFUSED' });
  // a key that is renewed in place counts from the next attempt
  mine.transport.setCurve({ ...other, serverKey: server.publicKey });
  const renewed = await connect(address, options(other));
  await Promise.all([renewed.close(), provider.close(), client.close()]);
  assert.deepEqual(errors, []);
});

test('F105: a client whose key was taken away hears why it does not come back, once, and comes back with a new one', async (t) => {
  const first = await secured(t);
  const mine = first.options(known);
  const client = await connect(first.address, mine);
  const errors: string[] = [];
  client.on('error', ({ code }) => errors.push(code));
  // the dispatcher restarts with another list at the same address
  await first.transport.close();
  await secured(t, first.address, other);
  await until(() => errors.length > 0, 'the refusal was told');
  await until(() => mine.transport.counters.refusedHandshakes >= 2, 'it is tried on');
  assert.deepEqual([errors, client.state], [['HANDSHAKE_REFUSED'], 'disconnected']);
  mine.transport.setCurve({ ...other, serverKey: server.publicKey });
  await until(() => client.state === 'connected', 'it is back');
  await client.close();
});

const renewed = curveKeyPair();

/** A daemon with keys in files, and how a client comes in with a pair. */
async function daemon(t: TestContext, services: object[] = [{ code: 100 }], more: object = {}) {
  const keys = folder(t);
  const { curve } = writeKeys(keys, { own: server, allowed: [known.publicKey] });
  const real = await Real.start(t, services, { curve, ...more });
  const enter = async (pair: { publicKey: string; secretKey: string }) => {
    const client = await connect(real.address, { ...quiet, curve: { ...pair, serverKey: server.publicKey } });
    t.after(() => client.close());
    return client;
  };
  return { real, keys, curve, enter };
}

test('F105: SIGHUP reads the list anew: new connections are held to it, running ones go on', async (t) => {
  const { real, keys, enter } = await daemon(t);
  const provider = await connectProvider(real.address, {
    ...quiet,
    curve: { ...known, serverKey: server.publicKey },
  });
  t.after(() => provider.close());
  provider.provide(100, (subscription) => subscription.respond('item'));
  const client = await enter(known);
  const states: string[] = [];
  client.on('state', (state) => states.push(state));
  writeKeys(keys, { own: server, allowed: [other.publicKey] });
  const report = await real.daemon.reload();
  assert.deepEqual([report?.diff.live, report?.diff.restart], [['curve.allowedKeysFile'], []]);
  await assert.rejects(enter(known), { code: 'HANDSHAKE_REFUSED' });
  await enter(other);
  assert.equal((await new Promise<{ text(): string }>((got) => client.subscribe(100, {}, got))).text(), 'item');
  assert.deepEqual(states, []);
  assert.equal((await real.daemon.reload())?.diff.unchanged, true);
});

test('F105: a key file that became bad refuses the reload, says why, and the old keys stay', async (t) => {
  const { real, keys, curve, enter } = await daemon(t);
  const faults: [spoil: () => void, says: RegExp][] = [
    [() => rmSync(curve.allowedKeysFile), /allowedKeysFile: .*no such file/],
    [() => writeFileSync(curve.allowedKeysFile, 'nonsense\n'), /allowedKeysFile: .*line 1: this is no key/],
    [() => writeFileSync(curve.allowedKeysFile, ''), /nobody could come in/],
    [() => writeFileSync(curve.secretKeyFile, other.secretKey), /does not belong to the public key/],
    [() => rmSync(curve.publicKeyFile), /publicKeyFile: .*no such file/],
  ];
  for (const [spoil, says] of faults) {
    writeKeys(keys, { own: server, allowed: [other.publicKey] });
    spoil();
    assert.equal(await real.daemon.reload(), undefined);
    const { error } = real.logged.findLast(({ msg }) => /refused/.test(String(msg)) && msg !== 'handshake refused')!;
    assert.match(String(error), says);
    assert.ok(!JSON.stringify(real.logged).includes(server.secretKey));
    await enter(known);
  }
  await assert.rejects(enter(other), { code: 'HANDSHAKE_REFUSED' });
});

test('F105: a new pair of the dispatcher, and switching keys on or off, says that it needs a restart; the list counts', async (t) => {
  const { real, keys, curve, enter } = await daemon(t);
  writeKeys(keys, { own: renewed, allowed: [other.publicKey] });
  for (let round = 0; round < 2; round++) {
    const report = await real.daemon.reload();
    assert.deepEqual(report?.diff.restart, ['curve.publicKeyFile', 'curve.secretKeyFile']);
  }
  await enter(other);
  real.write({ listen: [real.address], services: [{ code: 100 }] });
  assert.deepEqual((await real.daemon.reload())?.diff.restart, ['listen', 'curve']);
  await assert.rejects(connect(real.address, quiet), { code: 'HANDSHAKE_REFUSED' });
  const { allowedKeysFile: _, ...open } = curve;
  real.write({ listen: [real.address], services: [{ code: 100 }], curve: open });
  const { restart } = (await real.daemon.reload())!.diff;
  assert.ok(restart.includes('curve.allowedKeysFile'), String(restart));
  await assert.rejects(enter(known), { code: 'HANDSHAKE_REFUSED' });
});

test('F105: the key of a provider that is dialled is renewed by a reload; a wrong one is logged and never plain text', async (t) => {
  const provider = await bind('tcp://127.0.0.1:0', { ...quiet, curve: { ...other, allowedKeys: [server.publicKey] } });
  t.after(() => provider.close());
  provider.provide(100, () => 'here');
  const services = (serverKey: string) => [{ code: 100, providers: [{ address: provider.address!, serverKey }] }];
  const { real, curve, enter } = await daemon(t, services(renewed.publicKey));
  await until(() => real.logged.some(({ msg }) => msg === 'provider refuses us'), 'the refusal is logged');
  real.write({ listen: [real.address], services: services(other.publicKey), curve });
  assert.deepEqual((await real.daemon.reload())?.diff.live, ['serverKey']);
  const client = await enter(known);
  assert.equal((await client.request(100)).text(), 'here');
});
