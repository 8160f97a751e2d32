import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { Daemon } from '@trunkline/dispatcher';
import { silentLog } from '@trunkline/proto';
import type { ConnectOptions } from '@trunkline/proto/connect';
import { pino } from 'pino';

export const quiet: Pick<ConnectOptions, 'log'> = { log: silentLog };

/** A dispatcher of this process on real sockets, with its configuration file. */
export class Real {
  /** What it logged. */
  readonly logged: Record<string, unknown>[];
  daemon!: Daemon;

  private constructor(
    readonly file: string,
    logged: Record<string, unknown>[],
  ) {
    this.logged = logged;
  }

  static async start(t: TestContext, services: object[], more: object = {}): Promise<Real> {
    const real = new Real(join(folder(t), 'trunkline.json'), []);
    real.write({ listen: ['tcp://127.0.0.1:0'], ...more, services });
    await real.run();
    t.after(() => real.daemon.stop());
    return real;
  }

  /** Starts with the file as it is. */
  async run(): Promise<void> {
    const log = pino({ base: null }, { write: (line: string) => void this.logged.push(JSON.parse(line)) });
    this.daemon = await Daemon.start({ file: this.file, log });
  }

  get address(): string {
    return this.daemon.dispatcher.addresses[0]!;
  }

  get dispatcher() {
    return this.daemon.dispatcher;
  }

  write(content: object | string | Uint8Array): void {
    const plain = typeof content === 'string' || content instanceof Uint8Array;
    writeFileSync(this.file, plain ? content : JSON.stringify(content));
  }
}

/** A folder that is gone after the test. */
export function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'trunkline-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
