const LONE_SURROGATE = /\p{Surrogate}/u;

/** Whether the string can be UTF-8: half a surrogate pair would be bytes that every receiver refuses (F50). */
export function isWellFormed(value: string): boolean {
  return !LONE_SURROGATE.test(value);
}
