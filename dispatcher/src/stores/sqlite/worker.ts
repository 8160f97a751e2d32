import { parentPort, workerData } from 'node:worker_threads';
import { TrunklineError } from '@trunkline/proto/errors';
import type { Chunk } from '../../queues/store.js';
import { openingFault, StoreDatabase } from './database.js';
import { faultOf } from './faults.js';
import type { Fault, Reply, Request, SqliteOptions } from './messages.js';

/** Time between two steps of housekeeping while there are commits, in milliseconds. */
const STEP_EVERY = 20;

const port = parentPort!;
const options = workerData as SqliteOptions;
let database: StoreDatabase | undefined;
let failures = 0;
let lastFault: Fault | undefined;
let commits = 0;
let commitsAtStep = 0;
let next: NodeJS.Timeout | undefined;

function answer(reply: Reply, transfer: ArrayBuffer[] = []): void {
  port.postMessage(reply, transfer);
}

function buffersOf(chunks: readonly Chunk[]): ArrayBuffer[] {
  return chunks
    .map(({ bytes }) => bytes)
    .filter(({ buffer, byteLength }) => buffer instanceof ArrayBuffer && buffer.byteLength === byteLength)
    .map(({ buffer }) => buffer as ArrayBuffer);
}

function open(id: number): void {
  try {
    database = new StoreDatabase(options);
    answer({ id, value: database.load(options.directory) });
    tidyLater();
  } catch (error) {
    const fault = openingFault(error, options.directory);
    try {
      database?.close();
    } catch {
      // the first fault is the one to tell
    }
    database = undefined;
    answer({ id, fault });
  }
}

function commit(request: Request & { kind: 'commit' }): void {
  const { id } = request;
  try {
    if (request.failures === failures) opened().commit(request.commit);
  } catch (error) {
    failures++;
    lastFault = faultOf(error, 'storing');
  }
  if (request.failures !== failures) {
    answer({ id, fault: lastFault!, failures });
    return;
  }
  answer({ id, value: undefined });
  database?.afterCommit();
  commits++;
}

function opened(): StoreDatabase {
  if (database === undefined) throw new TrunklineError('STORE_FAILED', 'the store is not open');
  return database;
}

function ask(id: number, doing: string, run: () => unknown): void {
  try {
    const value = run();
    answer({ id, value }, Array.isArray(value) ? buffersOf(value) : []);
  } catch (error) {
    answer({ id, fault: faultOf(error, doing) });
  }
}

/** Housekeeping in small steps: now and then while there are commits, one after the other while there are none. */
function tidyLater(): void {
  next ??= setTimeout(tidy, STEP_EVERY);
}

function tidy(): void {
  const quiet = commits === commitsAtStep;
  commitsAtStep = commits;
  const more = database?.tidy(quiet) ?? false;
  next = more || !quiet ? setTimeout(tidy, quiet ? 0 : STEP_EVERY) : undefined;
}

port.on('message', (request: Request) => {
  if (request.kind === 'commit') commit(request);
  else if (request.kind === 'read') {
    ask(request.id, 'reading', () => opened().read(request.queue, request.from, request.max));
  } else if (request.kind === 'usage') ask(request.id, 'looking at the device', () => opened().usage());
  else if (request.kind === 'open') open(request.id);
  else {
    clearTimeout(next);
    ask(request.id, 'closing', () => database?.close());
    database = undefined;
    port.close();
    return;
  }
  tidyLater();
});
