// A dispatcher that may open no more files: what runs goes on, the log stays quiet, and it recovers.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { until } from '../support/wait.js';
import { watch } from './fixtures/watch.js';
import { flows, World } from './fixtures/world.js';

const LIMIT = 512;

test('more connections than the process may have: running streams go on, and later ones are taken again', async () => {
  await using world = await World.start({ session: { heartbeat: '2s' }, services: [{ code: 1 }] }, { running: false });
  const execPath = `${world.folder}/limited`;
  writeFileSync(execPath, `#!/bin/sh\nulimit -n ${LIMIT}\nexec ${process.execPath} "$@"\n`, { mode: 0o755 });
  await world.startDispatcher({ execPath });
  const limits = { heartbeat: 2000 };
  await world.provider({ 1: { every: 5 } }, { limits });
  const seen = watch((await world.client({ limits })).subscribe(1));
  await flows(seen);
  const port = Number(world.address.slice(world.address.lastIndexOf(':') + 1));
  const strangers: Socket[] = [];
  await using _strangers = { [Symbol.asyncDispose]: async () => strangers.forEach((each) => void each.destroy()) };
  // one after the other: the system drops what comes faster than it is accepted
  while (strangers.length < LIMIT) {
    const stranger = connect(port, '127.0.0.1').on('error', () => {});
    strangers.push(stranger);
    await once(stranger, 'connect');
  }
  await world.logged('accepting a connection failed');
  const before = seen.count;
  await until(() => seen.count > before + 200, 'the stream goes on');
  const complaints = world.logs('accepting a connection failed').length;
  assert.ok(complaints < 20, `${complaints} lines in the log`);
  for (const stranger of strangers) stranger.destroy();
  const late = watch((await world.client({ limits })).subscribe(1));
  await flows(late, 'a new subscriber is served');
  assert.deepEqual([seen.holes, seen.disorder, seen.statuses], [0, 0, ['live: ']]);
});
