/** Names of events and what their listeners get. */
export type EventMap<Events> = { [Name in keyof Events]: readonly unknown[] };
type Handler<Args extends readonly unknown[]> = (...args: Args) => unknown;

/**
 * Typed events. `emit` never throws: a listener that throws or rejects is handed to `onFailure`, and the others are
 * called all the same.
 */
export class Emitter<Events extends EventMap<Events>> {
  readonly #listeners = new Map<keyof Events, Handler<never>[]>();
  readonly #onFailure: (error: unknown, name: keyof Events) => void;

  constructor(onFailure: (error: unknown, name: keyof Events) => void) {
    this.#onFailure = onFailure;
  }

  /** Returns the way to take the listener away again. */
  on<Name extends keyof Events>(name: Name, listener: Handler<Events[Name]>): () => void {
    const listeners = this.#listeners.get(name);
    // a new list each time, so that one being called stays as it is
    this.#listeners.set(name, listeners === undefined ? [listener] : [...listeners, listener]);
    return () => this.off(name, listener);
  }

  off<Name extends keyof Events>(name: Name, listener: Handler<Events[Name]>): void {
    const listeners = this.#listeners.get(name) ?? [];
    const at = listeners.indexOf(listener);
    if (at >= 0) this.#listeners.set(name, [...listeners.slice(0, at), ...listeners.slice(at + 1)]);
  }

  has(name: keyof Events): boolean {
    return (this.#listeners.get(name)?.length ?? 0) > 0;
  }

  /** Returns whether anybody listened. */
  emit<Name extends keyof Events>(name: Name, ...args: Events[Name]): boolean {
    const listeners = this.#listeners.get(name);
    if (listeners === undefined || listeners.length === 0) return false;
    for (const listener of listeners) this.#call(name, listener as Handler<Events[Name]>, args);
    return true;
  }

  /** What all listeners returned, once it has settled; undefined when none returned a promise. */
  settle<Name extends keyof Events>(name: Name, ...args: Events[Name]): Promise<unknown> | undefined {
    const pending: Promise<unknown>[] = [];
    for (const listener of this.#listeners.get(name) ?? []) {
      const result = this.#call(name, listener as Handler<Events[Name]>, args);
      if (result !== undefined) pending.push(result);
    }
    return pending.length === 0 ? undefined : Promise.all(pending);
  }

  #call<Name extends keyof Events>(
    name: Name,
    listener: Handler<Events[Name]>,
    args: Events[Name],
  ): Promise<unknown> | undefined {
    try {
      const result = listener(...args);
      if (!isThenable(result)) return undefined;
      return Promise.resolve(result).catch((error) => this.#onFailure(error, name));
    } catch (error) {
      this.#onFailure(error, name);
      return undefined;
    }
  }
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
