import { HEADER_BYTES, type Header, writeHeader } from './header.js';

/** A batch of one message. */
export function singleMessage(header: Header, bytes?: Uint8Array): Uint8Array {
  const batch = new Uint8Array(HEADER_BYTES + (bytes?.length ?? 0));
  writeHeader(batch, 0, batch.length, header);
  if (bytes !== undefined) batch.set(bytes, HEADER_BYTES);
  return batch;
}

export function sameBytes(left: Uint8Array, right: Uint8Array): boolean {
  if (left.length !== right.length) return false;
  for (let index = 0; index < left.length; index++) if (left[index] !== right[index]) return false;
  return true;
}
