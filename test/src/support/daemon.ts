import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type RunningCommand, trunkline } from './command.js';

/** `trunkline dispatcher` as a process of its own, on a free port. */
export interface DaemonProcess {
  /** Where it listens; the same after a restart. */
  readonly address: string;
  /** Folder of its own, with the configuration file in it. */
  readonly folder: string;
  readonly file: string;
  readonly process: RunningCommand;
  /** Writes another configuration into the file, for a reload. */
  configure(configuration: object): void;
  /** SIGTERM, and waits for the end. */
  stop(): Promise<number | NodeJS.Signals>;
  /** SIGKILL, and waits for the end. */
  kill(): Promise<number | NodeJS.Signals>;
  /** Starts it again at the same address, after `stop` or `kill`; with another configuration if one is given. */
  start(configuration?: object): Promise<void>;
}

export interface LogLine {
  readonly msg: string;
  readonly address?: string;
  readonly [field: string]: unknown;
}

/** What a daemon has logged so far. */
export function logOf({ err }: RunningCommand): LogLine[] {
  return err
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line) as LogLine);
}

/** A folder that goes away with the test. */
export function temporaryFolder(context: TestContext, prefix = 'trunkline-'): string {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/**
 * Starts a daemon with the configuration, whose `listen` is replaced, and waits until it listens. It does not outlive
 * the test.
 */
export async function startDaemon(context: TestContext, configuration: object): Promise<DaemonProcess> {
  const folder = temporaryFolder(context);
  const file = join(folder, 'trunkline.json');
  let current = configuration;
  let address = 'tcp://127.0.0.1:0';
  let running: RunningCommand | undefined;

  const configure = (changed: object) => {
    current = changed;
    write();
  };
  const write = () => writeFileSync(file, JSON.stringify({ ...current, listen: [address] }));
  const start = async (changed = current): Promise<void> => {
    configure(changed);
    const daemon = trunkline(context, ['dispatcher', '--config', file]);
    running = daemon;
    const started = () => logOf(daemon).some(({ msg }) => msg === 'dispatcher started');
    await daemon.until(started, 'the dispatcher has started');
    address = logOf(daemon).find(({ msg }) => msg === 'listening')!.address!;
    // a reload, or a second daemon of the same file, means this address
    write();
  };

  await start();
  return {
    get address() {
      return address;
    },
    folder,
    file,
    get process() {
      return running!;
    },
    configure,
    stop: () => running!.kill('SIGTERM'),
    kill: () => running!.kill('SIGKILL'),
    start,
  };
}
