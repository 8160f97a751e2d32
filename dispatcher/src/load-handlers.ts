import { pathToFileURL } from 'node:url';
import { TrunklineError } from '@trunkline/proto';
import type { Handlers } from './handlers.js';
import type { Configuration, ModuleReference } from './service.js';

/**
 * Loads the modules that the configuration names: each default export is a factory that gets the options and returns
 * the handler, or a promise of it.
 * @throws TrunklineError CONFIG_INVALID naming the module
 */
export async function loadHandlers({ modules }: Configuration): Promise<Handlers> {
  return {
    send: await loadAll(modules.sendHandlers, (each) => each.name, 'choose'),
    return: await loadAll(modules.returnHandlers, (each) => each.name, 'open'),
    probe: await loadAll(modules.onProbe, (each) => each.name, 'onProbe'),
    application: await loadAll(modules.messageTypes, (each) => each.type, 'onMessage'),
  };
}

async function loadAll<R extends ModuleReference, K, H>(
  references: readonly R[],
  key: (reference: R) => K,
  method: keyof H & string,
): Promise<ReadonlyMap<K, H>> {
  const handlers = new Map<K, H>();
  for (const reference of references) handlers.set(key(reference), await loadOne<H>(reference, method));
  return handlers;
}

async function loadOne<H>({ name, path, options }: ModuleReference, method: keyof H & string): Promise<H> {
  try {
    const module = (await import(pathToFileURL(path).href)) as { default?: (options: unknown) => H | Promise<H> };
    if (typeof module.default !== 'function') throw new Error('its default export is not a function');
    const handler = await module.default(options);
    if (typeof handler?.[method] !== 'function') throw new Error(`what it returns has no method ${method}`);
    return handler;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new TrunklineError('CONFIG_INVALID', `module ${name} (${path}): ${reason}`, { cause });
  }
}
