import { TrunklineError } from '@trunkline/proto/errors';
import { StoreDamage } from '../../queues/store.js';
import type { Fault } from './messages.js';

const codeOf = (error: unknown): string => String((error as { code?: unknown } | undefined)?.code ?? '');

/** A page of the database is not what SQLite wrote there. */
export function isCorrupt(error: unknown): boolean {
  return codeOf(error).startsWith('SQLITE_CORRUPT') || codeOf(error) === 'SQLITE_NOTADB';
}

/** No room: on the device, in a quota or under a limit of file sizes (SQLite calls the latter two a failed write). */
export function isFull(error: unknown): boolean {
  const code = codeOf(error);
  return code === 'SQLITE_FULL' || code === 'SQLITE_IOERR_WRITE' || code === 'ENOSPC' || code === 'EDQUOT';
}

/** After a failed flush nobody knows what is on the device, and asking again would answer that all is well. */
export function isFlushFailure(error: unknown): boolean {
  return codeOf(error) === 'SQLITE_IOERR_FSYNC' || codeOf(error) === 'SQLITE_IOERR_DIR_FSYNC';
}

export function isLocked(error: unknown): boolean {
  return codeOf(error).startsWith('SQLITE_BUSY') || codeOf(error).startsWith('SQLITE_LOCKED');
}

/** What an error means to the caller of the store. `doing` begins the message. */
export function faultOf(error: unknown, doing: string): Fault {
  if (error instanceof StoreDamage) return { code: error.code, message: error.message, damage: error.damage };
  if (error instanceof TrunklineError) return { code: error.code, message: error.message };
  const text = error instanceof Error ? error.message : String(error);
  const code = codeOf(error);
  const message = `${doing}: ${text}${code === '' || text.includes(code) ? '' : ` (${code})`}`;
  if (isFull(error)) return { code: 'STORE_FULL', message };
  if (isLocked(error)) return { code: 'STORE_LOCKED', message };
  return { code: 'STORE_FAILED', message };
}

export function errorOf({ code, message, damage }: Fault): TrunklineError {
  if (damage !== undefined) return new StoreDamage(damage);
  return new TrunklineError(code, message, { retryable: code === 'STORE_FULL' });
}
