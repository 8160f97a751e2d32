/** Up to here a loop beats the call into the runtime. */
const SHORT = 16;
/** Where only a part is copied the call needs a view as well. */
const SHORT_PART = 64;

/** Copies the first `length` bytes of `from` to `at` of `target`. */
export function copyBytes(from: Uint8Array, length: number, target: Uint8Array, at: number): void {
  const part = from.length !== length;
  if (length > (part ? SHORT_PART : SHORT)) target.set(part ? from.subarray(0, length) : from, at);
  else for (let index = 0; index < length; index++) target[at + index] = from[index]!;
}
