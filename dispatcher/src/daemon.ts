import { defaultSessionLimits, type SessionContext, TrunklineError } from '@trunkline/proto';
import { nodeContext } from '@trunkline/proto/connect';
import { type CurveOptions, openTransport } from '@trunkline/proto/transport';
import { ZmqTransport } from '@trunkline/proto/zmq';
import { type Logger, pino } from 'pino';
import { readConfiguration, readQueueOptions } from './config/index.js';
import { Dispatcher, type ReloadReport, type StopReport } from './dispatcher.js';
import { keptCurve } from './forwarding-table.js';
import type { Handlers } from './handlers.js';
import { loadHandlers } from './load-handlers.js';
import type { Configuration, CurveDefinition } from './service.js';
import { SqliteStore } from './stores/index.js';

export interface DaemonOptions {
  /** Configuration file, read again at every reload. */
  readonly file: string;
  readonly log?: Logger;
}

/** A dispatcher over ZeroMQ with its configuration file, logs and signals. */
export class Daemon {
  private reloading: Promise<ReloadReport | undefined> = Promise.resolve(undefined);
  private stopped: Promise<StopReport> | undefined;

  private constructor(
    private readonly file: string,
    readonly log: Logger,
    readonly dispatcher: Dispatcher,
    private readonly transport: ReturnType<typeof openTransport>,
    private readonly handlers: Handlers,
  ) {}

  /**
   * @throws ConfigurationError; TrunklineError ADDRESS_IN_USE, ADDRESS_INVALID, CONFIG_INVALID for a module,
   * STORE_DAMAGED, STORE_LOCKED, STORE_FULL, STORE_FAILED
   */
  static async start({ file, log = createLog() }: DaemonOptions): Promise<Daemon> {
    const { configuration } = await readConfiguration(file);
    log.level = configuration.log.level;
    const handlers = await loadHandlers(configuration);
    const curve = curveOf(configuration.curve, configuration);
    const transport = openTransport({ log, curve });
    let dispatcher: Dispatcher | undefined;
    let daemon: Daemon | undefined;
    const context = contextOf(configuration, (error) => {
      log.error({ err: error }, 'a fault of the dispatcher');
      if (dispatcher !== undefined) dispatcher.core.counters.faults++;
    });
    const { dataDirectory } = configuration;
    const store = dataDirectory === undefined ? {} : { store: new SqliteStore({ directory: dataDirectory }) };
    const date = () => Date.now();
    const reread = () => {
      if (daemon === undefined) throw new TrunklineError('CONFIG_INVALID', 'still starting', { retryable: true });
      return daemon.reread();
    };
    const more = { date, readQueueOptions, reread, ...store };
    dispatcher = new Dispatcher({ context, transport, configuration, handlers, log, ...more });
    try {
      await dispatcher.start();
    } catch (error) {
      await transport.close();
      throw error;
    }
    log.info({ file, services: configuration.services.length, pid: process.pid }, 'dispatcher started');
    daemon = new Daemon(file, log, dispatcher, transport, handlers);
    return daemon;
  }

  /** `reread` for a signal, which nobody waits for: never rejects, undefined when the old table stays. */
  reload(): Promise<ReloadReport | undefined> {
    return this.reread().catch(() => undefined);
  }

  /**
   * Applies the file as it is now, whole or not at all, and logs what changed or why nothing did. One at a time.
   * @throws ConfigurationError; TrunklineError CONFIG_INVALID for what needs a restart, SHUTTING_DOWN
   */
  reread(): Promise<ReloadReport> {
    const run = this.reloading.then(() => this.rereadNow());
    this.reloading = run.catch(() => undefined);
    return run;
  }

  private async rereadNow(): Promise<ReloadReport> {
    try {
      const { configuration } = await readConfiguration(this.file);
      // it may have been told to stop meanwhile
      if (this.stopped !== undefined) throw new TrunklineError('SHUTTING_DOWN', 'the dispatcher is stopping');
      this.checkModules(configuration);
      this.checkKeys(configuration);
      // before anything is dialled with a key that is new
      const curve = curveOf(keptCurve(this.dispatcher.configuration.curve, configuration.curve), configuration);
      if (curve !== undefined && this.transport instanceof ZmqTransport) this.transport.setCurve(curve);
      const report = this.dispatcher.reload(configuration, this.handlers);
      this.log.level = configuration.log.level;
      const { diff, removed, ended, moved } = report;
      if (diff.unchanged) this.log.info({}, 'reload: no change');
      else this.log.info({ services: summary(diff), live: diff.live, removed, ended, moved }, 'reload: applied');
      if (diff.restart.length > 0) this.log.warn({ restart: diff.restart }, 'reload: some changes need a restart');
      return report;
    } catch (error) {
      const problems = error instanceof Error && 'problems' in error ? error.problems : undefined;
      this.log.error({ problems, error: (error as Error).message }, 'reload: refused, the old table stays');
      throw error;
    }
  }

  /** Modules are loaded at the start only, so a service cannot begin to use a new one. */
  private checkModules({ services }: Configuration): void {
    for (const { name, sendHandler, returnHandlers, onProbe } of services) {
      const missing = [
        ...(this.dispatcher.registry.knowsSendHandler(sendHandler) ? [] : [sendHandler]),
        ...returnHandlers.filter((handler) => !this.dispatcher.registry.knowsReturnHandler(handler)),
        ...(onProbe === '' || this.handlers.probe.has(onProbe) ? [] : [onProbe]),
      ];
      if (missing.length > 0) {
        throw new TrunklineError('CONFIG_INVALID', `service ${name} uses a module that needs a restart: ${missing}`);
      }
    }
  }

  /** A provider that must have a key is never dialled in plain text. */
  private checkKeys({ serverKeys }: Configuration): void {
    if (this.dispatcher.configuration.curve !== undefined || Object.keys(serverKeys).length === 0) return;
    throw new TrunklineError('CONFIG_INVALID', 'a server key needs "curve", and that needs a restart');
  }

  /** Ends in the time `drain` allows, and logs what was dropped. Never rejects. */
  stop(): Promise<StopReport> {
    this.stopped ??= this.stopNow();
    return this.stopped;
  }

  private async stopNow(): Promise<StopReport> {
    this.log.info({}, 'stopping');
    const report = await this.dispatcher.stop();
    await this.transport.close();
    const level = report.undeliveredBytes > 0 ? 'warn' : 'info';
    this.log[level](report, 'dispatcher stopped');
    return report;
  }
}

function summary({ services }: ReloadReport['diff']): object {
  return {
    added: services.added.map(({ name }) => name),
    removed: services.removed.map(({ name }) => name),
    changed: services.changed.map(({ after, fields }) => ({ name: after.name, fields })),
  };
}

/** What the transport is told: a provider without a server key is dialled in plain text. */
function curveOf(curve: CurveDefinition | undefined, { serverKeys }: Configuration): CurveOptions | undefined {
  if (curve === undefined) return undefined;
  const { publicKey, secretKey, allowedKeys } = curve;
  const serverKey = (address: string) => serverKeys[address];
  return { publicKey, secretKey, serverKey, ...(allowedKeys === undefined ? {} : { allowedKeys }) };
}

function contextOf({ session }: Configuration, onFault: (error: unknown) => void): SessionContext {
  const { heartbeat, livenessFactor, maxMessageBytes, receiveWindow } = session;
  const limits = { ...defaultSessionLimits, heartbeat, livenessFactor, maxMessage: maxMessageBytes, receiveWindow };
  return nodeContext({ name: 'dispatcher', limits }, onFault);
}

/** Logs as JSON lines to standard error, written before the call returns so that none is lost at an exit. */
function createLog(): Logger {
  return pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime }, pino.destination({ fd: 2, sync: true }));
}

/**
 * Runs a daemon until a signal: SIGHUP reloads, SIGTERM and SIGINT stop it, a second one of them exits at once with 1.
 * One that comes during the start counts when that is done. Resolves after a stop; then nothing keeps the process alive.
 * @throws what `Daemon.start` throws
 */
export async function runDaemon(options: DaemonOptions): Promise<void> {
  const starting = Daemon.start(options);
  let daemon: Daemon | undefined;
  let stopping = false;
  let finish = () => {};
  const done = new Promise<void>((resolve) => {
    finish = resolve;
  });
  // a start that fails is told below
  const once = (act: (started: Daemon) => void) => void starting.then(act, () => {});
  const stop = (signal: NodeJS.Signals) => {
    if (stopping) {
      daemon?.log.warn({ signal }, 'second signal: exiting at once');
      process.exit(1);
    }
    stopping = true;
    once((started) => void started.stop().then(finish));
  };
  const reload = () => once((started) => void started.reload());
  const handlers = { SIGHUP: reload, SIGTERM: stop, SIGINT: stop };
  for (const [signal, handler] of Object.entries(handlers)) process.on(signal, handler);
  try {
    daemon = await starting;
    await done;
    process.off('SIGHUP', reload);
  } catch (error) {
    for (const [signal, handler] of Object.entries(handlers)) process.off(signal, handler);
    throw error;
  }
}
