import { getHeapStatistics, setFlagsFromString } from 'node:v8';

/** What received batches may hold outside of the heap, as V8 counts it (twice), bytes. */
const ROOM = 96 * 1024 * 1024;
/** A heap that is larger has room enough by itself, bytes. */
const SMALL = ROOM / 2;

/**
 * Returns a function to be called after each young collection. V8 counts what batches hold outside of the heap against
 * the growth that it allows between two markings of the whole heap. Once it has marked a small heap, that is about 8 MiB,
 * less than what is received between two young collections: on a busy machine it then marks again with each of them.
 */
export function keepHeapRoom(): () => void {
  let told = 0;
  return () => {
    const used = getHeapStatistics().used_heap_size;
    // 0: as V8 sees fit
    const percent = used > SMALL ? 0 : Math.ceil(ROOM / used) * 100;
    if (percent === told) return;
    told = percent;
    setFlagsFromString(`--heap-growing-percent=${percent}`);
  };
}
