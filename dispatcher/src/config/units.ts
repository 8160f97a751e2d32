/** Timers fire at once for a longer delay, so nothing longer is taken: 24.8 days. */
export const maxDuration = 2 ** 31 - 1;
/** Most bytes any size may name; buffers and the length field of a message end about there. */
export const maxSize = 2 ** 31 - 1;
/** Most bytes a queue may be allowed to hold: it is made of many buffers, and on disk none need be in memory. */
export const maxQueueSize = Number.MAX_SAFE_INTEGER;
export const maxCode = 0xffff_ffff;

const durationUnits: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const sizeUnits: Readonly<Record<string, number>> = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 };

/** The same patterns stand in the JSON Schema. Only `durationOrZero` allows zero. */
export const patterns = {
  duration: '^[1-9][0-9]{0,9}(ms|s|m|h)$',
  durationOrZero: '^(0|[1-9][0-9]{0,9})(ms|s|m|h)$',
  size: '^[1-9][0-9]{0,9}(B|KiB|MiB|GiB)$',
  codeRange: '^[1-9][0-9]{0,9}-[1-9][0-9]{0,9}$',
  messageType: '^(12[89]|1[3-9][0-9]|2[0-4][0-9]|25[0-5])$',
  moduleName: '^[A-Za-z][A-Za-z0-9_.-]{0,63}$',
} as const;

const durationPattern = new RegExp(patterns.durationOrZero);
const sizePattern = new RegExp(patterns.size);
const rangePattern = new RegExp(patterns.codeRange);

/** `"5s"` → 5000 milliseconds; undefined for anything that is no duration. Bounds are not checked here. */
export function parseDuration(value: unknown): number | undefined {
  return typeof value === 'string' ? withUnit(value, durationPattern, durationUnits) : undefined;
}

/** `"64KiB"` or `65536` → 65536 bytes; undefined for anything that is no size. Bounds are not checked here. */
export function parseSize(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value > 0 ? value : undefined;
  return typeof value === 'string' ? withUnit(value, sizePattern, sizeUnits) : undefined;
}

function withUnit(text: string, pattern: RegExp, units: Readonly<Record<string, number>>): number | undefined {
  if (!pattern.test(text)) return undefined;
  const unit = text.replace(/^[0-9]+/, '');
  return Number.parseInt(text, 10) * (units[unit] ?? Number.NaN);
}

export interface CodeRange {
  readonly from: number;
  readonly to: number;
}

/** `1001` or `"5000-5999"`; undefined for anything else. That a range is empty or too high is not checked here. */
export function parseCode(value: unknown): CodeRange | undefined {
  if (typeof value === 'number') return Number.isInteger(value) && value >= 1 ? { from: value, to: value } : undefined;
  if (typeof value !== 'string' || !rangePattern.test(value)) return undefined;
  const [from, to] = value.split('-').map(Number) as [number, number];
  return { from, to };
}
