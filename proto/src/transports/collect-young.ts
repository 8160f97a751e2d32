import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Received between two collections, bytes. */
const STEP = 24 * 1024 * 1024;

let collect: ((options: { type: 'minor' }) => void) | undefined;
let left = STEP;

/**
 * Told of received bytes, collects young garbage after every 24 MiB of them: well under a millisecond.
 *
 * Each received batch is memory outside of the heap, held by a small object in it. Left alone, V8 sees that memory grow
 * by 64 MiB (32 over ZeroMQ's library, which counts it twice) long before the small objects fill its young generation, and marks the whole
 * heap to get rid of it: several times a second at full speed, and the longer the more the heap holds. Collected young in
 * time, it never comes to that, and the same memory is used again while it is still in the processor's cache.
 */
export function collectYoung(bytes: number): void {
  left -= bytes;
  if (left > 0) return;
  collect ??= collector();
  collect({ type: 'minor' });
  left = STEP;
}

/** The flag counts while a context is made; no other context of the process has `gc`. */
function collector(): (options: { type: 'minor' }) => void {
  setFlagsFromString('--expose-gc');
  try {
    return runInNewContext('gc') as (options: { type: 'minor' }) => void;
  } finally {
    setFlagsFromString('--no-expose-gc');
  }
}
