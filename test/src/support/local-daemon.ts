import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { Daemon } from '@trunkline/dispatcher';
import { pino } from 'pino';

/** A daemon on a configuration file of its own; stopped, and its folder removed, at the end of the test. */
export async function startDaemon(t: TestContext, configuration: object): Promise<{ daemon: Daemon; file: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'trunkline-'));
  const file = join(folder, 'trunkline.json');
  await writeFile(file, JSON.stringify(configuration));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const daemon = await Daemon.start({ file, log: pino({ enabled: false }) });
  t.after(() => daemon.stop());
  return { daemon, file };
}
