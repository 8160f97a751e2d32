// F39: a second dispatcher at the same address says so and goes; the first one notices nothing.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { watch } from './fixtures/watch.js';
import { flows, freePort, World } from './fixtures/world.js';

test('a second dispatcher on the same ipc path goes with a clear word, the first goes on (F39)', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-ipc-'));
  const path = join(folder, 'd.sock');
  try {
    await using world = await World.start({ listen: [`ipc://${path}`], services: [{ code: 1 }] });
    await world.provider({ 1: { every: 5 } });
    const seen = watch((await world.client()).subscribe(1));
    await flows(seen);
    const second = world.spawnDispatcher();
    assert.equal((await second.ended()).code, 1);
    assert.match(second.stderr, /cannot listen at "ipc:.*d\.sock"/);
    await flows(seen);
    const late = watch((await world.client()).subscribe(1, { params: 'late' }));
    await flows(late);
    assert.deepEqual([seen.holes, seen.statuses], [0, ['live: ']]);
    // what a killed one left behind is no obstacle
    await world.dispatcher.kill();
    assert.ok(existsSync(path));
    await world.startDispatcher();
    await flows(seen);
    await flows(late);
    world.dispatcher.signal('SIGTERM');
    assert.equal((await world.dispatcher.ended()).code, 0);
    assert.ok(!existsSync(path), 'the path is free after a stop');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('a TCP port in use: exit 1, with the address', async () => {
  const port = await freePort();
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const address = `tcp://127.0.0.1:${port}`;
  try {
    await using world = await World.start({ listen: [address], services: [{ code: 1 }] }, { running: false });
    const daemon = world.spawnDispatcher();
    assert.equal((await daemon.ended()).code, 1);
    assert.match(daemon.stderr, new RegExp(`cannot listen at "${address}"`));
  } finally {
    server.close();
  }
});

test('one of two addresses in use: nothing listens at the other', async () => {
  await using first = await World.start({ services: [{ code: 1 }] });
  const free = `tcp://127.0.0.1:${await freePort()}`;
  await using second = await World.start({ listen: [free, first.address], services: [] }, { running: false });
  const daemon = second.spawnDispatcher();
  assert.equal((await daemon.ended()).code, 1);
  await using third = await World.start({ listen: [free], services: [] });
  assert.equal((await third.status()).streams, 0);
});
