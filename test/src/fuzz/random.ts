/** Numbers in [0, 1) that depend on the seed alone (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

export const below = (random: () => number, limit: number): number => Math.floor(random() * limit);

export function pick<T>(random: () => number, from: readonly T[]): T {
  return from[below(random, from.length)]!;
}

export function randomBytes(random: () => number, length: number): Uint8Array {
  return Uint8Array.from({ length }, () => below(random, 256));
}

/** What breaks decoders: the edges of lengths and counts. */
const EDGES = [0, 1, 7, 8, 31, 32, 33, 127, 128, 254, 255];

/** A copy with some bytes changed, cut out or put in. */
export function mutate(random: () => number, bytes: Uint8Array): Uint8Array {
  const changed = [...bytes];
  for (let count = 1 + below(random, 4); count > 0; count--) {
    const at = below(random, changed.length + 1);
    const value = random() < 0.5 ? pick(random, EDGES) : below(random, 256);
    const how = below(random, 6);
    if (how < 3 && at < changed.length) changed[at] = value;
    else if (how === 3) changed.splice(at, 1 + below(random, 8));
    else if (how === 4) changed.splice(at, 0, value);
    else if (how === 5) changed.length = at;
  }
  return Uint8Array.from(changed);
}

/** The bytes inside a larger buffer whose surroundings would be noticed when read. */
export function embed(bytes: Uint8Array, before: number): { buffer: Uint8Array; at: number; end: number } {
  const buffer = new Uint8Array(before + bytes.length + 64).fill(0xff);
  buffer.set(bytes, before);
  return { buffer, at: before, end: before + bytes.length };
}

/** A view that throws when any byte at or behind its end is read. */
export function guarded(bytes: Uint8Array): Uint8Array {
  return new Proxy(bytes, {
    get(target, name) {
      if (typeof name === 'string' && /^\d+$/.test(name) && Number(name) >= target.length)
        throw new RangeError(`byte ${name} of ${target.length} was read`);
      const value = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
