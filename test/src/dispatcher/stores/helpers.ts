import assert from 'node:assert/strict';
import type { Chunk, Commit, Store } from '@trunkline/dispatcher/stores';
import { type ErrorCode, TrunklineError } from '@trunkline/proto';

const text = new TextEncoder();

/** Stand-in messages: what a chunk holds can be told from its sequences. */
export function chunk(queue: number, first: number, last = first, size = 40): Chunk & { queue: number } {
  const bytes = new Uint8Array(Math.max(1, size * (last - first + 1)));
  text.encodeInto(`${queue}:${first}-${last};`, bytes);
  for (let at = 32; at < bytes.length; at += 7) bytes[at] = first + at;
  return { queue, first, last, bytes };
}

export function commit(parts: Partial<{ [key in keyof Commit]: Commit[key] }>): Commit {
  return { append: [], put: new Map(), trim: [], drop: [], ...parts };
}

export const put = (records: Record<string, string | null>): Commit['put'] =>
  new Map(Object.entries(records).map(([key, value]) => [key, value === null ? null : text.encode(value)]));

export const record = (bytes: Uint8Array | undefined): string | undefined => bytes && new TextDecoder().decode(bytes);

export const rejects = (promise: Promise<unknown>, code: ErrorCode, message = /./): Promise<void> =>
  assert.rejects(promise, (error) => {
    assert.ok(error instanceof TrunklineError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, message);
    return true;
  });

/** Reads a queue to its end, window by window. */
export async function readAll(store: Store, queue: number, from = 1, window = 64 * 1024): Promise<Chunk[]> {
  const all: Chunk[] = [];
  for (let next = from; ; ) {
    const chunks = await store.read(queue, next, window);
    if (chunks.length === 0) return all;
    all.push(...chunks);
    const { last } = chunks[chunks.length - 1]!;
    if (last === Number.MAX_SAFE_INTEGER) return all;
    next = last + 1;
  }
}

export const ranges = (chunks: readonly Chunk[]): string =>
  chunks.map(({ first, last }) => `${first}-${last}`).join(' ');

export function assertChunks(actual: readonly Chunk[], expected: readonly Chunk[]): void {
  assert.equal(ranges(actual), ranges(expected));
  for (const [index, { first, bytes }] of actual.entries()) {
    assert.equal(Buffer.compare(bytes, expected[index]!.bytes), 0, `bytes of the chunk at ${first}`);
  }
}
