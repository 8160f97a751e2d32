// F1: a provider that comes back with an empty memory has what it had before, once, and nobody had to ask for it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { restartDynamic, restartStatic } from './fixtures/provider-restarts.js';

test('a provider that dials in is killed and starts with an empty memory (F1)', () => restartDynamic(3, '300ms'));

test('no probe is needed for that: the new process is noticed by itself (rule 6)', () => restartDynamic(2, '10m'));

test('the same at a static address', () => restartStatic(3));

test('the same at an ipc path, where each one leaves its file behind', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-ipc-'));
  try {
    await restartStatic(2, `ipc://${join(folder, 'p.sock')}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
