const LONE_SURROGATE = /\p{Surrogate}/u;

/** Whether the string can be UTF-8: half a surrogate pair would be bytes that every receiver refuses (F50). */
export function isWellFormed(value: string): boolean {
  return !LONE_SURROGATE.test(value);
}

/** Whether two texts are equal, in a time that does not tell how much of them is. */
export function sameText(given: string, expected: string): boolean {
  let different = given.length ^ expected.length;
  for (let index = 0; index < given.length; index++) {
    different |= given.charCodeAt(index) ^ expected.charCodeAt(index % Math.max(1, expected.length));
  }
  return different === 0;
}
