import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';

/** Descriptors that are not for accepted connections: files, sockets that are dialled, the program itself. */
const RESERVE = 64;

/**
 * How many connections may be accepted: less than the process may open files, since the system's sockets close what is
 * beyond without a word. Undefined where it cannot be told.
 */
export async function connectionLimit(): Promise<number | undefined> {
  const text = await readFile('/proc/self/limits', 'latin1').catch(() => '');
  const most = Number(/^Max open files\s+([0-9]+)/m.exec(text)?.[1] ?? Number.NaN);
  return Number.isNaN(most) ? undefined : Math.max(1, most - RESERVE);
}

let accepted = 0;

/** Lets a connection in, or destroys it: the listeners of a process share its descriptors. */
export function admit(socket: Socket, most: number | undefined): boolean {
  if (most !== undefined && accepted >= most) {
    socket.destroy();
    return false;
  }
  accepted++;
  socket.once('close', () => void accepted--);
  return true;
}
