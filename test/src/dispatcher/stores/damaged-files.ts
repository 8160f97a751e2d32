import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import {
  type Chunk,
  type Damage,
  SqliteStore,
  type Store,
  type StoreContents,
  StoreDamage,
} from '@trunkline/dispatcher/stores';
import { TrunklineError } from '@trunkline/proto';
import { temporaryFolder } from '../../support/daemon.js';
import { assertChunks, chunk, commit, put, record } from './helpers.js';

export const PAGE = 8192;

export const sizes = { logBytes: 256 * 1024, reserveBytes: 64 * 1024 };

/** The same three queues every time: small chunks, chunks of many pages, and one chunk only. */
export const written: Record<number, readonly Chunk[]> = {
  1: Array.from({ length: 150 }, (_, index) => chunk(1, index * 10 + 1, index * 10 + 10)),
  2: Array.from({ length: 12 }, (_, index) => chunk(2, index * 100 + 1, index * 100 + 100, 400)),
  3: [chunk(3, 7, 9)],
};

const copy = (chunks: readonly Chunk[], queue: number) =>
  chunks.map((part) => ({ ...part, queue, bytes: part.bytes.slice() }));

export function folder(context: TestContext): string {
  return mkdtempSync(join(temporaryFolder(context), 'store-'));
}

export const databaseOf = (directory: string): string => join(directory, 'queues.db');
export const logOf = (directory: string): string => join(directory, 'queues.db-wal');
export const noteOf = (directory: string): string => join(directory, 'queues.note');

export function opened(context: TestContext, directory: string): SqliteStore {
  const store = new SqliteStore({ directory, ...sizes });
  context.after(() => store.close());
  return store;
}

/** A store that was closed in order. */
export async function closedStore(context: TestContext): Promise<string> {
  const directory = folder(context);
  const store = opened(context, directory);
  await store.open();
  for (let at = 0; at < 150; at += 10) {
    await store.commit(commit({ append: copy(written[1]!.slice(at, at + 10), 1) }));
  }
  for (const part of written[2]!) await store.commit(commit({ append: copy([part], 2) }));
  await store.commit(commit({ append: copy(written[3]!, 3), put: put({ one: 'first record', two: 'second record' }) }));
  await store.close();
  return directory;
}

/** Its files, as they would be after a kill now. */
export function snapshot(context: TestContext, directory: string): string {
  const target = folder(context);
  execFileSync('cp', ['-r', `${directory}/.`, target]);
  return target;
}

export function change(file: string, edit: (bytes: Buffer) => Buffer | undefined): void {
  const bytes = readFileSync(file);
  writeFileSync(file, edit(bytes) ?? bytes);
}

/** Changes a byte somewhere behind a text that is in the file. */
export function changeBehind(file: string, text: string, distance: number): void {
  change(file, (bytes) => {
    const at = bytes.indexOf(text);
    assert.ok(at >= 0, `${text} is in ${file}`);
    bytes[at + distance]! ^= 0x55;
    return undefined;
  });
}

/** Reads a queue to its end, skipping what is damaged. */
export async function salvage(store: Store, queue: number): Promise<{ chunks: Chunk[]; damages: Damage[] }> {
  const chunks: Chunk[] = [];
  const damages: Damage[] = [];
  for (let next = 1; ; ) {
    try {
      const found = await store.read(queue, next, 64 * 1024);
      if (found.length === 0) break;
      chunks.push(...found);
      next = found[found.length - 1]!.last + 1;
    } catch (error) {
      if (!(error instanceof StoreDamage)) throw error;
      assert.equal(error.damage.queue, queue);
      assert.ok(error.damage.last >= next, 'a damage leads on');
      damages.push(error.damage);
      if (error.damage.last === Number.MAX_SAFE_INTEGER) break;
      next = error.damage.last + 1;
    }
  }
  return { chunks, damages };
}

/** Each chunk that was written is either there, or in a range that was told to be damaged: nothing goes silently. */
export async function assertNothingSilent(store: Store, told: readonly Damage[]): Promise<number> {
  let lost = 0;
  for (const [key, expected] of Object.entries(written)) {
    const queue = Number(key);
    const { chunks, damages } = await salvage(store, queue);
    const ranges = [...damages, ...told.filter((damage) => damage.queue === queue)];
    const there = new Map(chunks.map((part) => [part.first, part]));
    for (const part of expected) {
      const found = there.get(part.first);
      if (found !== undefined) assertChunks([found], [part]);
      else {
        lost++;
        const covered = ranges.some(({ first, last }) => first <= part.first && last >= part.last);
        assert.ok(covered, `queue ${queue}: ${part.first} to ${part.last} is gone without a word`);
      }
    }
  }
  return lost;
}

/** Opens a damaged store. Either it is refused with a code, or nothing is gone without a word. */
export async function judge(context: TestContext, directory: string): Promise<'refused' | number> {
  const store = opened(context, directory);
  let contents: StoreContents;
  try {
    contents = await store.open();
  } catch (error) {
    assert.ok(error instanceof TrunklineError && error.code === 'STORE_DAMAGED', String(error));
    return 'refused';
  }
  const records = ['one', 'two'].map((key) => record(contents.records.get(key)));
  const toldRecords = contents.damages.some(
    ({ queue, message }) => queue === undefined && /record|commits/.test(message),
  );
  if (!toldRecords) assert.deepEqual(records, ['first record', 'second record']);
  const lost = await assertNothingSilent(store, contents.damages);
  await store.close();
  return lost;
}

/** Fills one page after the other with NUL, each in a copy of its own. */
export async function everyPage(context: TestContext, step: number): Promise<void> {
  const directory = await closedStore(context);
  const pages = statSync(databaseOf(directory)).size / PAGE;
  const outcomes = new Map<string, number>();
  for (let page = 0; page < pages; page += step) {
    const damaged = snapshot(context, directory);
    change(databaseOf(damaged), (bytes) => void bytes.fill(0, page * PAGE, (page + 1) * PAGE));
    const lost = await judge(context, damaged);
    const outcome = lost === 'refused' ? lost : lost === 0 ? 'whole' : 'told';
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    rmSync(damaged, { recursive: true });
  }
  assert.ok(outcomes.has('told') && outcomes.has('refused'), [...outcomes].join(', '));
  context.diagnostic(`${pages} pages: ${[...outcomes].map(([outcome, count]) => `${count} ${outcome}`).join(', ')}`);
}
