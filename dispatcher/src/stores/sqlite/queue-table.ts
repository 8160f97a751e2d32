import type Database from 'better-sqlite3';
import type { Statement } from 'better-sqlite3';
import { type Chunk, type Damage, StoreDamage, type StoredQueue } from '../../queues/store.js';
import { chunkSum } from './checksum.js';
import { isCorrupt } from './faults.js';

/** A row without its bytes. */
interface Row {
  readonly first: number;
  readonly last: number;
  readonly sum: number;
  /** Number of the commit that wrote it. */
  readonly no: number;
  /** Bytes of the queue from its beginning to the end of this chunk: the size of any range without reading it. */
  readonly done: number;
  readonly size: number;
}

const COLUMNS = 'first, last, sum, no, done, size';
/** Chunks that are deleted in one step, where there are many. */
const STEP = 16;
/** A trim of more is done later, in steps. */
const AT_ONCE_BYTES = 8 * 1024 * 1024;
const AT_ONCE_SEQUENCES = 4096;

export const tableName = (id: number): string => `chunks_${id}`;

// sequences are bound as integers: as floating point numbers those above 2^51 would be stored as such
const integer = (value: number): bigint => BigInt(value);

/**
 * The chunks of one queue: a table of its own, so that a page that goes bad disturbs no other queue, and dropping a
 * queue is one row less in the list of tables.
 */
export class QueueTable {
  /** Chunks that end at or below are gone, whether or not their rows still are there. */
  base: number;
  /** Last sequence that was stored; undefined while there is no chunk. */
  end: number | undefined;
  /** Bytes of the queue from its beginning to the first chunk that is there, and to the end of the last. */
  start = 0;
  done = 0;
  /** Rows of chunks that are gone are still there. */
  leftovers: boolean;
  /** Its leftovers cannot be deleted. */
  stuck = false;
  /** What is wrong with it, found when it was opened. */
  damage: Damage | undefined;
  private readonly statements = new Map<string, Statement>();

  constructor(
    private readonly database: Database,
    readonly id: number,
    readonly queue: number,
    base: number,
  ) {
    this.base = base;
    this.leftovers = base > 0;
  }

  static create(database: Database, id: number, queue: number): QueueTable {
    database.exec(
      `CREATE TABLE ${tableName(id)} (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, sum INTEGER NOT NULL,
        no INTEGER NOT NULL, done INTEGER NOT NULL, size INTEGER NOT NULL, bytes BLOB NOT NULL)`,
    );
    return new QueueTable(database, id, queue, 0);
  }

  /** What a rollback puts back. */
  save(): () => void {
    const { base, end, start, done, leftovers } = this;
    return () => Object.assign(this, { base, end, start, done, leftovers });
  }

  /** Looks at both ends. Returns the queue as it is stored, if it has chunks and both ends can be read. */
  load(): { stored: StoredQueue | undefined; no: number } {
    let first: Row | undefined;
    try {
      first = this.seek(this.base + 1);
      const last = this.floor(Number.MAX_SAFE_INTEGER);
      if (first === undefined || last === undefined) return { stored: undefined, no: 0 };
      this.start = first.done - first.size;
      this.done = last.done;
      this.end = last.last;
      const stored = { queue: this.queue, first: first.first, last: last.last, bytes: this.done - this.start };
      return { stored, no: last.no };
    } catch (error) {
      if (!isCorrupt(error)) throw error;
      const from = first?.first ?? this.base + 1;
      const last = this.newest();
      this.damage = {
        queue: this.queue,
        first: from,
        last: last?.last ?? Number.MAX_SAFE_INTEGER,
        message: `queue ${this.queue}: its chunks from ${from} on cannot be read (${(error as Error).message})`,
      };
      return { stored: undefined, no: last?.no ?? 0 };
    }
  }

  /** The last chunk of a queue with a bad page, if that one is not bad. */
  private newest(): Row | undefined {
    try {
      return this.floor(Number.MAX_SAFE_INTEGER);
    } catch (error) {
      if (!isCorrupt(error)) throw error;
      return undefined;
    }
  }

  append({ first, last, bytes }: Chunk, no: number): void {
    const done = this.done + bytes.byteLength;
    this.statement(`INSERT INTO ${this.name} (${COLUMNS}, bytes) VALUES (?, ?, ?, ?, ?, ?, ?)`).run(
      integer(first),
      integer(last),
      integer(chunkSum(this.queue, first, last, bytes)),
      integer(no),
      integer(done),
      integer(bytes.byteLength),
      bytes,
    );
    this.done = done;
    this.end = last;
  }

  /** Forgets what ends at or below. With `later` no row is touched. Returns whether anything was forgotten. */
  trim(upTo: number, later: boolean): boolean {
    if (this.end === undefined || upTo <= this.base) return false;
    const before = this.base;
    const startBefore = this.start;
    if (upTo >= this.end) {
      this.base = this.end;
      this.start = this.done;
      this.end = undefined;
    } else {
      this.moveBase(upTo, later);
      if (this.base <= before) return false;
    }
    const small = this.start - startBefore <= AT_ONCE_BYTES && this.base - before <= AT_ONCE_SEQUENCES;
    if (later || !small || this.leftovers) this.leftovers = true;
    else this.statement(`DELETE FROM ${this.name} WHERE first <= ?`).run(integer(this.base));
    return true;
  }

  private moveBase(upTo: number, later: boolean): void {
    try {
      const row = this.floor(upTo);
      if (row === undefined) return;
      this.base = row.last <= upTo ? row.last : row.first - 1;
      this.start = row.last <= upTo ? row.done : row.done - row.size;
    } catch (error) {
      if (!later || !isCorrupt(error)) throw error;
      this.base = upTo;
    }
  }

  /** Deletes some rows of chunks that are gone; without any left, `leftovers` becomes false. */
  reclaim(): void {
    const sql = `DELETE FROM ${this.name} WHERE first <= ? AND last <= ? ORDER BY first LIMIT ${STEP}`;
    if (this.statement(sql).run(integer(this.base), integer(this.base)).changes < STEP) this.leftovers = false;
  }

  /** As `Store.read`. */
  read(from: number, maxBytes: number): Chunk[] {
    const chunks: Chunk[] = [];
    let size = 0;
    let next = Math.max(from, this.base + 1);
    try {
      for (;;) {
        const row = this.guard(next, () => this.seek(next));
        if (row === undefined) return chunks;
        size += row.size;
        if (chunks.length > 0 && size > maxBytes) return chunks;
        const { first, last } = row;
        const bytes = this.bytesOf(row);
        chunks.push({ first, last, bytes });
        if (size >= maxBytes || last === Number.MAX_SAFE_INTEGER) return chunks;
        next = last + 1;
      }
    } catch (error) {
      // what was read before it is good; the next read begins with the damage
      if (chunks.length > 0 && error instanceof StoreDamage) return chunks;
      throw error;
    }
  }

  private get name(): string {
    return tableName(this.id);
  }

  private statement(sql: string): Statement {
    let statement = this.statements.get(sql);
    if (statement === undefined) {
      statement = this.database.prepare(sql);
      this.statements.set(sql, statement);
    }
    return statement;
  }

  /** The newest chunk that begins at or below. */
  private floor(sequence: number): Row | undefined {
    const sql = `SELECT ${COLUMNS} FROM ${this.name} WHERE first <= ? ORDER BY first DESC LIMIT 1`;
    const row = this.statement(sql).get(integer(sequence)) as Row | undefined;
    return row !== undefined && row.last > this.base ? row : undefined;
  }

  /** The chunk that holds the sequence, or the next one above it. */
  private seek(sequence: number): Row | undefined {
    const row = this.floor(sequence);
    if (row !== undefined && row.last >= sequence) return row;
    const sql = `SELECT ${COLUMNS} FROM ${this.name} WHERE first > ? ORDER BY first LIMIT 1`;
    return this.statement(sql).get(integer(sequence)) as Row | undefined;
  }

  private bytesOf({ first, last, sum, size }: Row): Uint8Array {
    const range = { queue: this.queue, first, last };
    let bytes: Uint8Array;
    try {
      bytes = this.statement(`SELECT bytes FROM ${this.name} WHERE first = ?`)
        .pluck()
        .get(integer(first)) as Uint8Array;
    } catch (error) {
      if (!isCorrupt(error)) throw error;
      const message = `queue ${this.queue}: messages ${first} to ${last} cannot be read (${(error as Error).message})`;
      throw new StoreDamage({ ...range, message });
    }
    if (bytes.byteLength === size && chunkSum(this.queue, first, last, bytes) === sum) return bytes;
    throw new StoreDamage({ ...range, message: `queue ${this.queue}: messages ${first} to ${last} were changed` });
  }

  /** Runs `read`; where a page is bad, tells which sequences it takes with it. */
  private guard<T>(from: number, read: () => T): T {
    try {
      return read();
    } catch (error) {
      if (!isCorrupt(error)) throw error;
      const last = this.badUntil(from);
      const message = `queue ${this.queue}: messages ${from} to ${last} cannot be read (${(error as Error).message})`;
      throw new StoreDamage({ queue: this.queue, first: from, last, message });
    }
  }

  /** The last sequence from here on that cannot be looked up: doubles the distance, then halves it. */
  private badUntil(from: number): number {
    const most = this.end ?? Number.MAX_SAFE_INTEGER;
    let low = from;
    let high = from;
    for (let distance = 1; !this.readable(high); distance *= 2) {
      if (high >= most) return most;
      low = high;
      high = Math.min(most, from + distance);
    }
    while (high - low > 1) {
      const middle = low + Math.floor((high - low) / 2);
      if (this.readable(middle)) high = middle;
      else low = middle;
    }
    return low;
  }

  private readable(sequence: number): boolean {
    try {
      this.seek(sequence);
      return true;
    } catch (error) {
      if (isCorrupt(error)) return false;
      throw error;
    }
  }
}
