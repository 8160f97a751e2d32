import { crc32 } from 'node:zlib';

const head = new Float64Array(3);
const headBytes = new Uint8Array(head.buffer);
const text = new TextEncoder();

/** Over the place of a chunk and its bytes, so that a chunk in the wrong place is as wrong as a changed one. */
export function chunkSum(queue: number, first: number, last: number, bytes: Uint8Array): number {
  head[0] = queue;
  head[1] = first;
  head[2] = last;
  return crc32(bytes, crc32(headBytes));
}

export function recordSum(key: string, value: Uint8Array): number {
  return crc32(value, crc32(text.encode(key)));
}
