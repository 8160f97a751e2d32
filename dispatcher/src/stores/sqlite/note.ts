import { closeSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';

const MAGIC = 0x5452_4b4c;
const LENGTH = 16;

/**
 * A small file beside the database that says there is one, and the number of its newest commit. It is written after
 * every commit and not flushed: it may be behind the database, never ahead of it. So a database that is missing, or
 * that lost commits because its log was cut off, deleted or exchanged, is told from one that never had them.
 *
 * | offset | type | |
 * |---|---|---|
 * | 0 | u32 | magic |
 * | 4 | f64 | number of the newest commit |
 * | 12 | u32 | CRC-32 of the twelve bytes before |
 */
export class Note {
  private readonly bytes = Buffer.alloc(LENGTH);
  private file: number | undefined;
  private readonly path: string;
  /** Whether the file was there. */
  readonly found: boolean;
  /** The commit it names; 0 if it names none or cannot be read. */
  readonly commit: number;

  constructor(directory: string) {
    this.path = join(directory, 'queues.note');
    let found = true;
    let commit = 0;
    try {
      const file = openSync(this.path, 'r');
      const length = readSync(file, this.bytes, 0, LENGTH, 0);
      closeSync(file);
      const sound = length === LENGTH && this.bytes.readUInt32LE(0) === MAGIC;
      if (sound && this.bytes.readUInt32LE(12) === crc32(this.bytes.subarray(0, 12))) {
        commit = this.bytes.readDoubleLE(4);
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      found = false;
    }
    this.found = found;
    this.commit = commit;
  }

  /** Begins to write, from this commit on. */
  start(directory: string, commit: number): void {
    this.file = openSync(this.path, this.found ? 'r+' : 'w+');
    this.write(commit);
    fsyncSync(this.file);
    const folder = openSync(directory, 'r');
    fsyncSync(folder);
    closeSync(folder);
  }

  write(commit: number): void {
    if (this.file === undefined) return;
    this.bytes.writeUInt32LE(MAGIC, 0);
    this.bytes.writeDoubleLE(commit, 4);
    this.bytes.writeUInt32LE(crc32(this.bytes.subarray(0, 12)), 12);
    try {
      writeSync(this.file, this.bytes, 0, LENGTH, 0);
    } catch {
      // a note that lags behind is allowed
    }
  }

  close(): void {
    if (this.file === undefined) return;
    try {
      fsyncSync(this.file);
    } catch {
      // as above
    }
    closeSync(this.file);
    this.file = undefined;
  }
}
