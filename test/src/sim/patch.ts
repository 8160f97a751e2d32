type Call = (...args: unknown[]) => unknown;

/** Puts another method in place of one, private ones too; `replace` is given the original. Returns the way back. */
export function patch<T extends object>(
  type: { prototype: T },
  name: string,
  replace: (self: T, original: Call, args: readonly unknown[]) => unknown,
): () => void {
  const { prototype } = type;
  const method = Reflect.get(prototype, name) as Call | undefined;
  if (typeof method !== 'function') throw new Error(`there is no method ${name} to break`);
  Reflect.set(prototype, name, function (this: T, ...args: unknown[]) {
    return replace(this, (...more) => method.apply(this, more), args);
  });
  return () => {
    Reflect.set(prototype, name, method);
  };
}
