import { statSync } from 'node:fs';
import { TrunklineError } from '@trunkline/proto/errors';
import Database from 'better-sqlite3';
import { fileBytes, PAGE_BYTES } from './space.js';

/** Marks a database as ours: "TRKL". */
const APPLICATION = 0x54524b4c;
/** Raised when the tables change; a store of another format is refused. */
const FORMAT = 1;
/** How long a predecessor that is ending may keep the lock, in milliseconds. */
const LOCK_WAIT = 500;

const damaged = (message: string) => new TrunklineError('STORE_DAMAGED', message);

/**
 * Opens the database file and takes its lock. `known`: there was one before.
 * @throws what SQLite throws; TrunklineError STORE_DAMAGED where an empty store would hide a lost one; STORE_FAILED
 */
export function openDatabase(file: string, known: boolean, logBytes: number): Database {
  // the file is never opened but by SQLite: closing another descriptor of it would let go of the lock
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat?.isDirectory()) throw new TrunklineError('STORE_FAILED', `${file} is a directory`);
  const bytes = stat?.size ?? 0;
  if (bytes === 0 && known) throw damaged(`${file} is ${stat ? 'empty' : 'missing'}, and there was a store before`);
  if (bytes === 0 && fileBytes(`${file}-wal`) > 0) throw damaged(`${file} is missing, and its log is there`);
  const database = new Database(file, { timeout: LOCK_WAIT });
  try {
    // before the first access: it holds the lock from then on, and needs no shared memory
    database.pragma('locking_mode = EXCLUSIVE');
    if (bytes === 0) {
      database.pragma(`page_size = ${PAGE_BYTES}`);
      database.pragma('auto_vacuum = INCREMENTAL');
    }
    if (database.pragma('journal_mode = WAL', { simple: true }) !== 'wal') {
      throw new TrunklineError('STORE_FAILED', `${file} cannot have a write-ahead log here`);
    }
    database.pragma('synchronous = FULL');
    database.pragma('wal_autocheckpoint = 0');
    database.pragma(`journal_size_limit = ${logBytes}`);
    database.pragma('temp_store = MEMORY');
    database.pragma('cache_size = -16000');
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Makes the tables of a new store, or makes sure that the ones there are ours. */
export function createTables(database: Database, known: boolean): void {
  const application = database.pragma('application_id', { simple: true });
  const format = database.pragma('user_version', { simple: true });
  const tables = database.prepare('SELECT count(*) FROM sqlite_schema').pluck().get();
  if (application === 0 && format === 0 && tables === 0) {
    if (known) throw damaged('the database has no tables, and there was a store before');
    database.exec(`BEGIN IMMEDIATE;
      CREATE TABLE meta (id INTEGER PRIMARY KEY CHECK (id = 1), no INTEGER NOT NULL);
      INSERT INTO meta VALUES (1, 0);
      CREATE TABLE queues (id INTEGER PRIMARY KEY, queue INTEGER NOT NULL UNIQUE, base INTEGER NOT NULL);
      CREATE TABLE records (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, value BLOB NOT NULL,
        sum INTEGER NOT NULL, no INTEGER NOT NULL);
      PRAGMA application_id = ${APPLICATION};
      PRAGMA user_version = ${FORMAT};
      COMMIT`);
    return;
  }
  if (application !== APPLICATION) throw damaged('the database is not one of Trunkline');
  if (format !== FORMAT) {
    throw new TrunklineError('STORE_FAILED', `the store has format ${format}, this version reads ${FORMAT}`);
  }
}
