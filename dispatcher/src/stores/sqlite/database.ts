import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { TrunklineError } from '@trunkline/proto/errors';
import type Database from 'better-sqlite3';
import type { Statement } from 'better-sqlite3';
import { type Chunk, type Commit, type Damage, type StoreContents, StoreDamage } from '../../queues/store.js';
import { checkChunk } from '../chunk-list.js';
import { recordSum } from './checksum.js';
import { faultOf, isCorrupt, isFlushFailure, isFull, isLocked } from './faults.js';
import type { Fault, SqliteOptions } from './messages.js';
import { Note } from './note.js';
import { QueueTable, tableName } from './queue-table.js';
import { createTables, openDatabase } from './schema.js';
import { defaultLogBytes, PAGE_BYTES, Space } from './space.js';

/** Rows of a dropped queue that are deleted in one step. */
const STEP = 16;
/** Free pages that stay in the file for chunks to come, and how many are given back in one step. */
const SPARE_PAGES = (16 * 1024 * 1024) / PAGE_BYTES;
const VACUUM_PAGES = 64;

/** The store itself, in its worker: every call finishes before it returns. */
export class StoreDatabase {
  private readonly database: Database;
  private readonly space: Space;
  private readonly note: Note;
  private readonly logBytes: number;
  private readonly queues = new Map<number, QueueTable>();
  /** Tables of dropped queues whose chunks are still there. */
  private dropped = new Set<number>();
  private lastTable = 0;
  /** Number of the newest commit. */
  private no = 0;
  /** Bytes that went into the log since it was moved, about: asking SQLite costs more than it is worth. */
  private logged = 0;
  /** The log could not move into the database. */
  private stalled = false;
  private broken: Fault | undefined;
  private undo: (() => void)[] = [];
  private readonly begin: Statement;
  private readonly end: Statement;
  private readonly writeRecord: Statement;
  private readonly deleteRecord: Statement;
  private readonly writeNumber: Statement;
  private readonly writeBase: Statement;

  constructor(options: SqliteOptions) {
    mkdirSync(options.directory, { recursive: true });
    this.note = new Note(options.directory);
    this.logBytes = options.logBytes ?? defaultLogBytes(options.directory);
    this.database = openDatabase(join(options.directory, 'queues.db'), this.note.found, this.logBytes);
    try {
      createTables(this.database, this.note.found);
      this.space = new Space(options.directory, this.database, options.reserveBytes ?? this.logBytes + 1024 * 1024);
      this.begin = this.database.prepare('BEGIN IMMEDIATE');
      this.end = this.database.prepare('COMMIT');
      this.writeRecord = this.database.prepare(
        `INSERT INTO records (key, value, sum, no) VALUES (?, ?, ?, ?)
         ON CONFLICT (key) DO UPDATE SET value = excluded.value, sum = excluded.sum, no = excluded.no`,
      );
      this.deleteRecord = this.database.prepare('DELETE FROM records WHERE key = ?');
      this.writeNumber = this.database.prepare('UPDATE meta SET no = ?');
      this.writeBase = this.database.prepare('UPDATE queues SET base = ? WHERE id = ?');
    } catch (error) {
      this.database.close();
      throw error;
    }
  }

  /** @throws what SQLite threw, or TrunklineError STORE_DAMAGED */
  load(directory: string): StoreContents {
    const damages: Damage[] = [];
    const records = this.loadRecords(damages);
    const queues = this.loadQueues(damages);
    if (this.no < this.note.commit) {
      const message = `the last ${this.note.commit - this.no} commits are missing: the log was cut off, deleted or exchanged`;
      damages.push({ queue: undefined, first: 0, last: 0, message });
    }
    this.note.start(directory, this.no);
    this.space.hold();
    return { records, queues, damages };
  }

  commit(commit: Commit): void {
    if (this.broken !== undefined) throw new TrunklineError(this.broken.code, this.broken.message);
    const bytes = commit.append.reduce((sum, chunk) => sum + chunk.bytes.byteLength, 0);
    if (bytes > 0 && !this.admit(bytes, commit.append.length)) {
      throw new TrunklineError('STORE_FULL', 'storing: the device is full');
    }
    try {
      this.transact(() => this.apply(commit, false));
    } catch (error) {
      this.recover(error, commit);
    }
    this.no++;
    this.logged += bytes + (2 * commit.append.length + commit.put.size + commit.trim.length + 4) * PAGE_BYTES;
    this.note.write(this.no);
  }

  /** Moves the log into the database when it has grown enough. To be called after a commit was answered. */
  afterCommit(): void {
    if (this.logged >= this.logBytes) this.checkpoint();
  }

  read(queue: number, from: number, maxBytes: number): Chunk[] {
    return this.queues.get(queue)?.read(from, maxBytes) ?? [];
  }

  usage(): { bytes: number; free: number } {
    return this.space.usage();
  }

  /** One small step of housekeeping. Returns whether there may be more to do. `quiet`: nobody waits. */
  tidy(quiet: boolean): boolean {
    if (this.broken !== undefined) return false;
    try {
      if (this.reclaim() || this.vacuum()) return true;
      if (quiet && this.logged >= this.logBytes / 4) this.checkpoint();
      this.space.hold();
    } catch (error) {
      // a full device: the next commit that needs the room says so
      if (!isFull(error)) this.failed(error);
    }
    return false;
  }

  close(): void {
    if (this.broken === undefined) this.checkpoint();
    try {
      this.database.close();
    } finally {
      this.note.close();
    }
  }

  private admit(bytes: number, pieces: number): boolean {
    if (this.stalled) this.checkpoint();
    return !this.stalled && this.space.admit(bytes, pieces, () => this.checkpoint());
  }

  private apply({ append, put, trim, drop }: Commit, later: boolean): void {
    const no = this.no + 1;
    let written = append.length > 0 && trim.length === 0 && drop.length === 0;
    for (const chunk of append) this.tableFor(chunk).append(chunk, no);
    for (const [key, value] of put) {
      if (value === null) this.deleteRecord.run(key);
      else this.writeRecord.run(key, value, BigInt(recordSum(key, value)), BigInt(no));
      written ||= value !== null;
    }
    for (const { queue, upTo } of trim) this.trim(queue, upTo, later);
    for (const queue of drop) this.drop(queue);
    // a commit that leaves no row behind leaves its number
    if (!written) this.writeNumber.run(BigInt(no));
  }

  private tableFor(chunk: Chunk & { readonly queue: number }): QueueTable {
    const { queue, first } = chunk;
    let table = this.queues.get(queue);
    if (table?.damage !== undefined) throw new StoreDamage(table.damage);
    checkChunk(chunk, table?.end);
    if (table !== undefined && table.end === undefined && first <= table.base) {
      // numbers that were there before begin again: the old rows must not come between
      this.drop(queue);
      table = undefined;
    }
    if (table !== undefined) {
      this.undo.push(table.save());
      return table;
    }
    const id = this.lastTable + 1;
    table = QueueTable.create(this.database, id, queue);
    this.database.prepare('INSERT INTO queues (id, queue, base) VALUES (?, ?, 0)').run(BigInt(id), BigInt(queue));
    this.lastTable = id;
    this.queues.set(queue, table);
    this.undo.push(() => this.queues.delete(queue));
    return table;
  }

  private trim(queue: number, upTo: number, later: boolean): void {
    const table = this.queues.get(queue);
    if (table === undefined) return;
    this.undo.push(table.save());
    if (table.trim(upTo, later) && table.leftovers) this.writeBase.run(BigInt(table.base), BigInt(table.id));
  }

  private drop(queue: number): void {
    const table = this.queues.get(queue);
    if (table === undefined) return;
    this.database.prepare('DELETE FROM queues WHERE id = ?').run(BigInt(table.id));
    this.queues.delete(queue);
    this.dropped.add(table.id);
    this.undo.push(() => {
      this.queues.set(queue, table);
      this.dropped.delete(table.id);
    });
  }

  private transact(run: () => void): void {
    this.undo = [];
    try {
      this.begin.run();
      run();
      this.end.run();
    } catch (error) {
      if (this.database.inTransaction) this.database.exec('ROLLBACK');
      for (const undo of this.undo.reverse()) undo();
      throw error;
    }
  }

  /** A commit failed: tries again where another way may work, else throws. */
  private recover(error: unknown, commit: Commit): void {
    if (isFull(error) && commit.append.length === 0) {
      this.checkpoint();
      this.space.release();
      this.checkpoint();
      this.transact(() => this.apply(commit, true));
      return;
    }
    if (isCorrupt(error) && commit.trim.length > 0) {
      // rows that cannot be deleted stay, below the base
      this.transact(() => this.apply(commit, true));
      return;
    }
    this.failed(error);
    throw error;
  }

  private failed(error: unknown): void {
    if (isFlushFailure(error)) this.broken = faultOf(error, 'flushing, so nothing more is stored until a restart');
  }

  private checkpoint(): void {
    try {
      this.logged = 0;
      this.database.pragma('wal_checkpoint(PASSIVE)');
      this.stalled = false;
    } catch (error) {
      // the log goes on growing as long as there is room, but with no more chunks
      this.stalled = true;
      this.failed(error);
    }
  }

  private reclaim(): boolean {
    for (const id of this.dropped) {
      this.tidily(
        () => {
          const { changes } = this.database.prepare(`DELETE FROM ${tableName(id)} LIMIT ${STEP}`).run();
          if (changes === STEP) return;
          this.database.exec(`DROP TABLE ${tableName(id)}`);
          this.dropped.delete(id);
          this.undo.push(() => this.dropped.add(id));
        },
        () => this.dropped.delete(id),
      );
      return true;
    }
    for (const table of this.queues.values()) {
      if (!table.leftovers || table.stuck) continue;
      this.tidily(
        () => {
          this.undo.push(table.save());
          table.reclaim();
          if (!table.leftovers) this.writeBase.run(0n, BigInt(table.id));
        },
        () => (table.stuck = true),
      );
      return true;
    }
    return false;
  }

  /** Rows of a damaged page cannot be deleted: they keep their room until the store is made anew. */
  private tidily(run: () => void, giveUp: () => void): void {
    try {
      this.transact(run);
    } catch (error) {
      if (!isCorrupt(error)) throw error;
      giveUp();
    }
  }

  private vacuum(): boolean {
    const free = this.database.pragma('freelist_count', { simple: true }) as number;
    const pages = this.database.pragma('page_count', { simple: true }) as number;
    if (free <= SPARE_PAGES || free <= pages / 4) return false;
    this.database.pragma(`incremental_vacuum(${VACUUM_PAGES})`);
    this.logged += 2 * VACUUM_PAGES * PAGE_BYTES;
    this.afterCommit();
    return true;
  }

  private loadRecords(damages: Damage[]): Map<string, Uint8Array> {
    const records = new Map<string, Uint8Array>();
    const rows = this.database.prepare('SELECT key, value, sum, no FROM records').raw();
    for (const [key, value, sum, no] of rows.all() as [string, Uint8Array, number, number][]) {
      this.no = Math.max(this.no, no);
      if (recordSum(key, value) === sum) records.set(key, value);
      else damages.push({ queue: undefined, first: 0, last: 0, message: `record ${JSON.stringify(key)} was changed` });
    }
    return records;
  }

  private loadQueues(damages: Damage[]): StoreContents['queues'] {
    const stored: StoreContents['queues'][number][] = [];
    this.no = Math.max(this.no, this.database.prepare('SELECT no FROM meta').pluck().get() as number);
    const names = this.database.prepare(`SELECT name FROM sqlite_schema WHERE name LIKE 'chunks%'`).pluck().all();
    for (const name of names as string[]) this.dropped.add(Number(name.slice(tableName(0).length - 1)));
    this.lastTable = Math.max(0, ...this.dropped);
    const rows = this.database.prepare('SELECT id, queue, base FROM queues').raw().all();
    for (const [id, queue, base] of rows as [number, number, number][]) {
      const table = new QueueTable(this.database, id, queue, base);
      const found = table.load();
      this.dropped.delete(id);
      this.queues.set(queue, table);
      this.no = Math.max(this.no, found.no);
      if (found.stored !== undefined) stored.push(found.stored);
      if (table.damage !== undefined) damages.push(table.damage);
    }
    return stored;
  }
}

/** The fault of a store that could not be opened. */
export function openingFault(error: unknown, directory: string): Fault {
  const doing = `opening the store in ${directory}`;
  const fault = faultOf(error, doing);
  if (isCorrupt(error)) return { ...fault, code: 'STORE_DAMAGED' };
  if (isLocked(error)) return { ...fault, code: 'STORE_LOCKED', message: `${doing}: another process has it` };
  return fault;
}
