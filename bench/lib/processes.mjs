import { fork, spawn } from 'node:child_process';
import { accessSync, constants, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve as resolvePath } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const workerFile = fileURLToPath(new URL('./worker.mjs', import.meta.url));
/** Debian puts servers where a user's PATH does not look. */
const morePlaces = ['/usr/sbin', '/usr/local/sbin', '/usr/lib/rabbitmq/bin'];
const READY_MS = 60_000;

const keeperFile = fileURLToPath(new URL('./keeper.mjs', import.meta.url));

const servers = new Set();
const workers = new Set();
let folder;
let keeper;

/** Temporary folder of this run, made at the first call. */
export function scratch() {
  if (folder === undefined) {
    folder = mkdtempSync(join(tmpdir(), 'trunkline-bench-'));
    tellKeeper({ scratch: folder });
  }
  return folder;
}

function tellKeeper(message) {
  if (keeper === undefined) {
    keeper = fork(keeperFile, { detached: true, stdio: 'ignore' });
    keeper.on('error', () => {});
    keeper.unref();
    keeper.channel?.unref();
  }
  if (keeper.connected) keeper.send(message, () => {});
}

/** A program that this machine does not have: reported, not fatal. */
export class Missing extends Error {}

/** @throws Missing */
export function findProgram(name) {
  for (const place of [...(process.env.PATH ?? '').split(delimiter), ...morePlaces]) {
    const file = resolvePath(place, name);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {}
  }
  throw new Missing(`${name} is not installed`);
}

export async function freePort() {
  const server = createServer();
  await new Promise((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/**
 * Starts a server in a process group of its own (a Ctrl-C of the terminal reaches only the bench, which then stops it)
 * and resolves when it takes connections at `port`.
 */
export async function startServer(name, program, args, { port, env = {} }) {
  const log = join(scratch(), `${name}-${port}.log`);
  const out = openSync(log, 'a');
  const options = { detached: true, stdio: ['ignore', out, out], cwd: scratch(), env: { ...process.env, ...env } };
  const child = spawn(program, args, options);
  let failure;
  child.once('error', (error) => {
    failure = error;
  });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const server = {
    pid: child.pid,
    /** Resolves when the whole group is gone. */
    async stop(signal = 'SIGTERM') {
      signalGroup(child, signal);
      const late = setTimeout(() => signalGroup(child, 'SIGKILL'), 5000);
      if (child.exitCode === null && child.signalCode === null) await exited;
      clearTimeout(late);
      signalGroup(child, 'SIGKILL');
      servers.delete(child);
      tellKeeper({ stopped: child.pid });
    },
  };
  servers.add(child);
  if (child.pid !== undefined) tellKeeper({ started: child.pid });
  const limit = Date.now() + READY_MS;
  while (!(await answers(port))) {
    if (failure !== undefined || child.exitCode !== null || child.signalCode !== null || Date.now() > limit) {
      await server.stop('SIGKILL');
      throw new Error(`${name} did not start: ${failure?.message ?? readFileSync(log, 'utf8').slice(-2000)}`);
    }
    await pause(10);
  }
  return server;
}

function signalGroup(child, signal) {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // gone already
  }
}

function answers(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/** A client process: its functions are the exports of `roles/ROLE.mjs`. It ends when the bench does, however that ends. */
export class Worker {
  #child;
  #calls = new Map();
  #last = 0;
  #role;

  constructor(role) {
    this.#role = role;
    const execArgv = ['--max-old-space-size=8192', ...profiling(role)];
    this.#child = fork(workerFile, [role], { execArgv, detached: true });
    workers.add(this);
    this.#child.on('message', ({ id, value, error }) => {
      const call = this.#calls.get(id);
      this.#calls.delete(id);
      if (error === undefined) call?.resolve(value);
      else call?.reject(new Error(`${role}: ${error}`));
    });
    this.#child.on('exit', (code, signal) => this.#gone(`${role} process ended (${signal ?? code})`));
    this.#child.on('error', (error) => this.#gone(error.message));
  }

  get pid() {
    return this.#child.pid;
  }

  #gone(reason) {
    workers.delete(this);
    for (const { reject } of this.#calls.values()) reject(new Error(reason));
    this.#calls.clear();
  }

  call(name, args = {}) {
    return new Promise((resolve, reject) => {
      if (!workers.has(this)) return reject(new Error(`${this.#role} process is gone`));
      const id = ++this.#last;
      this.#calls.set(id, { resolve, reject });
      this.#child.send({ id, name, args });
    });
  }

  async stop() {
    if (!workers.has(this)) return;
    const gone = new Promise((resolve) => this.#child.once('exit', resolve));
    if (this.#child.connected) this.#child.disconnect();
    const late = setTimeout(() => this.kill(), 2000);
    await gone;
    clearTimeout(late);
  }

  kill() {
    this.#child.kill('SIGKILL');
  }
}

/** BENCH_PROFILE=role,… writes CPU profiles of these roles to BENCH_PROFILE_DIR; `daemon` is the dispatcher. */
export function profiling(role) {
  if (!(process.env.BENCH_PROFILE ?? '').split(',').includes(role)) return [];
  return ['--cpu-prof', `--cpu-prof-dir=${process.env.BENCH_PROFILE_DIR ?? 'profiles'}`];
}

/** Ends everything at once: for the end of the bench, whatever it was. */
export function endAll() {
  for (const worker of workers) worker.kill();
  for (const child of servers) signalGroup(child, 'SIGKILL');
  servers.clear();
  if (folder === undefined) return;
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  folder = undefined;
}

/** Runs `main` and cleans up behind it, also after Ctrl-C. */
export async function runCleanly(main) {
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ]) {
    process.once(signal, () => process.exit(code));
  }
  process.on('exit', endAll);
  try {
    process.exitCode = await main();
  } catch (error) {
    console.error(error);
    process.exitCode = 1;
  }
  endAll();
  // only where something that failed still waits for what is gone
  setTimeout(() => process.exit(), 1000).unref();
}
