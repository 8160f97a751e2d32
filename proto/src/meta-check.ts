import { decodeMeta } from './meta.js';

/*
 * As in meta-writer.ts. Meta: tag 0a, key 12, attrs 1a { name 0a, value 12 }, content type 22.
 * Value: string 0a, int 10, double 21, bool 28.
 */

/** Whether a receiver can decode a meta. Looks through the usual ones without making anything of them. */
export function isReadableMeta(bytes: Uint8Array, start: number, end: number): boolean {
  if (start === end || isUsual(bytes, start, end)) return true;
  try {
    decodeMeta(bytes, start, end);
    return true;
  } catch {
    return false;
  }
}

/** Short fields, ASCII text, and values as SDKs write them. Any other may be readable all the same. */
function isUsual(bytes: Uint8Array, start: number, end: number): boolean {
  let at = start;
  while (at + 2 <= end) {
    const field = bytes[at]!;
    const length = bytes[at + 1]!;
    const from = at + 2;
    at = from + length;
    if (length > 127 || at > end) return false;
    if (field === 0x1a ? !isUsualAttribute(bytes, from, at) : !isTextField(field) || !isAscii(bytes, from, at)) {
      return false;
    }
  }
  return at === end;
}

function isTextField(field: number): boolean {
  return field === 0x0a || field === 0x12 || field === 0x22;
}

function isUsualAttribute(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start < 4 || bytes[start] !== 0x0a) return false;
  const value = start + 2 + bytes[start + 1]!;
  if (value + 2 > end || bytes[value] !== 0x12 || value + 2 + bytes[value + 1]! !== end) return false;
  return isAscii(bytes, start + 2, value) && isUsualValue(bytes, value + 2, end);
}

function isUsualValue(bytes: Uint8Array, start: number, end: number): boolean {
  switch (bytes[start]) {
    case 0x0a:
      return start + 2 <= end && start + 2 + bytes[start + 1]! === end && isAscii(bytes, start + 2, end);
    case 0x10: {
      let last = start + 1;
      while (last < end && bytes[last]! > 127) last++;
      return last === end - 1 && end - start <= 11;
    }
    case 0x21:
      return end - start === 9;
    case 0x28:
      return end - start === 2 && bytes[start + 1]! <= 1;
    default:
      return false;
  }
}

function isAscii(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at]! > 127) return false;
  return true;
}
