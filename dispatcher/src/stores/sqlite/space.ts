import { closeSync, fsyncSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type Database from 'better-sqlite3';

export const PAGE_BYTES = 8192;
const FRAME_BYTES = PAGE_BYTES + 24;
const MIB = 1024 * 1024;
/** Left over when a chunk is let in: pages that come with it. */
const MARGIN = 16 * PAGE_BYTES;
/** As long as this is free and more, room is not looked at for every chunk. */
const PLENTY = 64 * MIB;

export function fileBytes(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

const clamp = (value: number, least: number, most: number): number => Math.min(most, Math.max(least, value));

export function defaultLogBytes(directory: string): number {
  const { blocks, bsize } = statfsSync(directory);
  return Math.floor(clamp((blocks * bsize) / 16, MIB, 8 * MIB));
}

/**
 * The room of the device. Chunks are let in while there is room for them, for what of the log has yet to move into the
 * database, and for the reserve: a file that holds some space. On a full device the reserve is given up, so that
 * trims and records go on; chunks are let in again when it could be set aside again.
 */
export class Space {
  private readonly reserve: string;
  private readonly files: { readonly database: string; readonly log: string };
  /** Bytes that may still be let in before room is looked at again. */
  private credit = 0;
  private held = false;

  constructor(
    private readonly directory: string,
    private readonly database: Database,
    private readonly reserveBytes: number,
  ) {
    this.reserve = join(directory, 'queues.reserve');
    this.files = { database: join(directory, 'queues.db'), log: join(directory, 'queues.db-wal') };
  }

  /** Whether chunks of so many bytes, in so many pieces, find room. */
  admit(bytes: number, pieces: number, checkpoint: () => void): boolean {
    const need = (Math.ceil(bytes / (PAGE_BYTES - 4)) + 2 * pieces) * FRAME_BYTES;
    if (this.held && this.credit >= 2 * need) {
      this.credit -= 2 * need;
      return true;
    }
    this.credit = 0;
    if (!this.hold()) return false;
    let left = this.left(need);
    if (left < 0) {
      checkpoint();
      left = this.left(need);
    }
    if (left > PLENTY) this.credit = PLENTY / 2;
    return left >= 0;
  }

  /** Sets the reserve aside if it is not and there is room. Returns whether it is. */
  hold(): boolean {
    if (this.held) return true;
    if (fileBytes(this.reserve) === this.reserveBytes) this.held = true;
    else if (this.free() < this.reserveBytes + MARGIN) return false;
    else this.held = this.fill();
    return this.held;
  }

  release(): void {
    this.held = false;
    this.credit = 0;
    rmSync(this.reserve, { force: true });
  }

  usage(): { bytes: number; free: number } {
    const bytes = fileBytes(this.files.database) + fileBytes(this.files.log);
    const missing = this.held ? 0 : this.reserveBytes;
    const free = this.free() - this.growth() - missing + this.count('freelist_count') * PAGE_BYTES;
    return { bytes, free: Math.max(0, free) };
  }

  /** Bytes in the log that have not moved into the database. */
  private get logBytes(): number {
    const [row] = this.database.pragma('wal_checkpoint(NOOP)') as { log: number; checkpointed: number }[];
    return row === undefined || row.log === row.checkpointed ? 0 : row.log * FRAME_BYTES;
  }

  private free(): number {
    const { bavail, bsize } = statfsSync(this.directory);
    return bavail * bsize;
  }

  private count(name: 'page_count' | 'freelist_count'): number {
    return this.database.pragma(name, { simple: true }) as number;
  }

  /** By how much the database file grows when the log moves into it. */
  private growth(): number {
    return Math.max(0, this.count('page_count') * PAGE_BYTES - fileBytes(this.files.database));
  }

  private left(need: number): number {
    const free = this.free();
    const log = Math.max(0, this.logBytes + need - fileBytes(this.files.log));
    const pages = Math.max(0, need - this.count('freelist_count') * PAGE_BYTES);
    return free - this.growth() - log - pages - MARGIN;
  }

  private fill(): boolean {
    let file: number | undefined;
    try {
      file = openSync(this.reserve, 'w');
      const zeros = Buffer.alloc(Math.min(MIB, this.reserveBytes));
      for (let left = this.reserveBytes; left > 0; ) left -= writeSync(file, zeros, 0, Math.min(left, zeros.length));
      fsyncSync(file);
      return true;
    } catch {
      // something else took the room meanwhile
      rmSync(this.reserve, { force: true });
      return false;
    } finally {
      if (file !== undefined) closeSync(file);
    }
  }
}
