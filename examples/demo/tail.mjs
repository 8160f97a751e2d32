// Follows a file that grows, is truncated, or is moved away and written anew.

import { constants, realpathSync } from 'node:fs';
import { open, realpath, stat } from 'node:fs/promises';
import { sep } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const LOOK_MS = 200;
const CHUNK_BYTES = 64 * 1024;
/** A longer line is given out in pieces. */
const LONGEST_LINE = 64 * 1024;
/** What is shown of a file that is there already. */
const LINES_BEFORE = 10;
const LINE_FEED = 0x0a;

/**
 * Opens a regular file that lies in one of the folders, whatever links its path goes through.
 * @throws Error for any other file, one that is missing, and a path that changes under its hands
 */
export async function openInside(path, folders) {
  const real = await realpath(path).catch(() => undefined);
  // one text for both: what lies outside is nobody's business
  const inside = real !== undefined && folders.some((folder) => real.startsWith(realpathSync(folder) + sep));
  if (!inside) throw new Error(`there is no such file in the folders of this provider: ${path}`);
  const file = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const [opened, now] = await Promise.all([file.stat(), stat(path).catch(() => undefined), realpath(path)]);
  if (opened.isFile() && now?.ino === opened.ino && now.dev === opened.dev) return { file, path };
  await file.close();
  throw new Error(`not a regular file: ${path}`);
}

/** Lines as Buffers, beginning with the last few that are there; ends with an AbortError of the signal. */
export async function* followLines(first, reopen, signal) {
  let { file } = first;
  const { path } = first;
  const reader = new LineReader();
  try {
    reader.position = await startOfLastLines(file);
    for (;;) {
      yield* reader.read(file);
      if (await wasReplaced(file, path)) {
        // what was written between the last look and the move
        yield* reader.read(file);
        const next = await reopen().catch(() => undefined);
        if (next !== undefined) {
          await file.close();
          file = next.file;
          yield* reader.restart();
          continue;
        }
      }
      await pause(LOOK_MS, undefined, { signal });
    }
  } finally {
    await file.close();
  }
}

class LineReader {
  position = 0;
  #rest = Buffer.alloc(0);

  async *read(file) {
    if ((await file.stat()).size < this.position) yield* this.restart();
    for (;;) {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(CHUNK_BYTES), 0, CHUNK_BYTES, this.position);
      if (bytesRead === 0) return;
      this.position += bytesRead;
      yield* this.#cut(Buffer.concat([this.#rest, buffer.subarray(0, bytesRead)]));
    }
  }

  /** The file begins anew; an unfinished line of before will not be finished. */
  *restart() {
    this.position = 0;
    if (this.#rest.length > 0) yield this.#rest;
    this.#rest = Buffer.alloc(0);
  }

  *#cut(bytes) {
    let start = 0;
    for (let end = bytes.indexOf(LINE_FEED); end >= 0; end = bytes.indexOf(LINE_FEED, start)) {
      yield bytes.subarray(start, end);
      start = end + 1;
    }
    for (; bytes.length - start > LONGEST_LINE; start += LONGEST_LINE)
      yield bytes.subarray(start, start + LONGEST_LINE);
    this.#rest = Buffer.from(bytes.subarray(start));
  }
}

async function startOfLastLines(file) {
  const { size } = await file.stat();
  const from = Math.max(0, size - CHUNK_BYTES);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(size - from), 0, size - from, from);
  let at = bytesRead;
  // the last line feed ends a line, it does not begin one
  if (buffer[at - 1] === LINE_FEED) at--;
  for (let line = 0; line < LINES_BEFORE && at > 0; line++) at = buffer.subarray(0, at).lastIndexOf(LINE_FEED);
  return at > 0 ? from + at + 1 : from;
}

async function wasReplaced(file, path) {
  const [opened, now] = await Promise.all([file.stat(), stat(path).catch(() => undefined)]);
  return now !== undefined && (now.ino !== opened.ino || now.dev !== opened.dev);
}
