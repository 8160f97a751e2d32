import { link, lstat, open, rename, stat, unlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { TrunklineError } from '../errors.js';

/*
 * Binding takes the place of whatever stands at an ipc path: a file is replaced, a socket that another process serves is
 * stolen without a word, and the file stays behind. So the path is looked at before, under a lock file that exists only
 * while somebody looks, binds or removes.
 */

/** A lock this old, in ms, was left behind by a process that died. */
const staleLockMs = 5000;
/** How long to wait for somebody else's lock, in ms. */
const lockPatienceMs = 2000;
/** How long the one who serves a socket may take to accept a connection, in ms. */
const probeMs = 1000;

/** The socket file that a listener made; another one in its place is not ours to remove. */
export interface IpcFile {
  readonly path: string;
  readonly inode: string;
}

/**
 * Binds at a path that nobody serves.
 * @throws TrunklineError ADDRESS_IN_USE when somebody answers there or is about to bind, ADDRESS_INVALID when the path
 * cannot hold a socket; what `bind` throws
 */
export async function bindIpc<T>(path: string, bind: () => Promise<T>): Promise<{ bound: T; file: IpcFile }> {
  await assertFolder(path);
  return locked(path, async () => {
    await clear(path);
    const bound = await bind();
    return { bound, file: { path, inode: (await inodeOf(path)) ?? '' } };
  });
}

/** Removes the socket file if it is still the same one. Never throws: a file left behind is taken as stale later. */
export async function removeIpc(file: IpcFile): Promise<void> {
  try {
    await locked(file.path, async () => {
      if ((await inodeOf(file.path)) === file.inode) await unlink(file.path);
    });
  } catch {
    // the folder may be gone or read-only by now
  }
}

async function assertFolder(path: string): Promise<void> {
  const folder = dirname(path);
  try {
    if ((await stat(folder)).isDirectory()) return;
  } catch (error) {
    const reason = codeOf(error) === 'ENOENT' ? 'does not exist' : `cannot be read (${codeOf(error)})`;
    throw new TrunklineError('ADDRESS_INVALID', `cannot listen at "ipc://${path}": the folder ${folder} ${reason}`);
  }
  throw new TrunklineError('ADDRESS_INVALID', `cannot listen at "ipc://${path}": ${folder} is not a folder`);
}

/** Makes way for a socket: nothing stands there, or one that nobody serves any more, which is removed. */
async function clear(path: string): Promise<void> {
  let kind: Awaited<ReturnType<typeof lstat>>;
  try {
    kind = await lstat(path);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return;
    throw new TrunklineError('ADDRESS_INVALID', `cannot listen at "ipc://${path}": ${codeOf(error)}`);
  }
  if (!kind.isSocket()) {
    throw new TrunklineError(
      'ADDRESS_INVALID',
      `cannot listen at "ipc://${path}": a file that is no socket stands there and is left alone`,
    );
  }
  if (await served(path)) throw inUse(path, 'another process serves it');
  await unlink(path).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return;
    throw new TrunklineError('ADDRESS_INVALID', `cannot remove the stale socket ${path}: ${codeOf(error)}`);
  });
}

/** Whether somebody answers at a socket; in doubt, yes. */
function served(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    const settle = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(probeMs, () => settle(true));
    socket.once('connect', () => settle(true));
    socket.once('error', (error) => settle(!['ECONNREFUSED', 'ENOENT'].includes(codeOf(error))));
  });
}

async function locked<T>(path: string, action: () => Promise<T>): Promise<T> {
  const lock = `${path}.lock`;
  await acquire(path, lock);
  try {
    return await action();
  } finally {
    await unlink(lock).catch(() => {});
  }
}

async function acquire(path: string, lock: string): Promise<void> {
  for (let waited = 0; ; waited += 20) {
    try {
      await (await open(lock, 'wx')).close();
      return;
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') {
        throw new TrunklineError('ADDRESS_INVALID', `cannot listen at "ipc://${path}": ${codeOf(error)} for ${lock}`);
      }
    }
    if (waited >= lockPatienceMs) throw inUse(path, `another process is about to bind it (${lock})`);
    if (!(await dropStale(lock))) await pause(20);
  }
}

/** Takes away a lock whose owner died; of several who try, the rename lets one succeed. */
async function dropStale(lock: string): Promise<boolean> {
  try {
    const seen = await lstat(lock);
    if (Math.abs(Date.now() - seen.mtimeMs) < staleLockMs) return false;
    const aside = `${lock}.${process.pid}.${Math.random().toString(36).slice(2)}`;
    await rename(lock, aside);
    const stale = (await lstat(aside)).ino === seen.ino;
    // Somebody else was faster and this is his new lock: he gets it back.
    if (!stale) await link(aside, lock);
    await unlink(aside);
    return stale;
  } catch (error) {
    return codeOf(error) === 'ENOENT';
  }
}

async function inodeOf(path: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await lstat(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}

function inUse(path: string, reason: string): TrunklineError {
  return new TrunklineError('ADDRESS_IN_USE', `cannot listen at "ipc://${path}": ${reason}`);
}

function codeOf(error: unknown): string {
  return (error as { code?: string }).code ?? String(error);
}
