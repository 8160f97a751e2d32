import type { Connection } from '@trunkline/proto';
import type { Core } from './core.js';
import { Provider } from './provider.js';
import type { ServiceDefinition } from './service.js';

/** Providers at static addresses; each address is dialled once, however many services name it. */
export class StaticProviders {
  private readonly providers = new Map<string, { provider: Provider; connection: Connection | undefined }>();

  constructor(
    private readonly core: Core,
    private readonly dial: (provider: Provider) => Connection,
  ) {}

  /** The provider at an address; it is not dialled before `update`. */
  get(address: string): Provider {
    let entry = this.providers.get(address);
    if (entry === undefined) {
      entry = { provider: new Provider(this.core, address, address, address), connection: undefined };
      this.providers.set(address, entry);
    }
    return entry.provider;
  }

  /**
   * Dials what is named and not dialled yet, or said once that it will not have us, and leaves what is named no longer.
   */
  update(services: readonly ServiceDefinition[]): void {
    const named = new Set(services.flatMap(({ providers }) => (providers === 'dynamic' ? [] : providers)));
    for (const [address, entry] of this.providers) {
      if (named.has(address)) {
        // one that refused us for good is asked again, perhaps with what it wants
        if (entry.connection?.state === 'closed') entry.connection = undefined;
        entry.connection ??= this.dial(entry.provider);
      } else {
        this.providers.delete(address);
        void entry.connection?.close();
      }
    }
  }

  *all(): Generator<Provider> {
    for (const { provider } of this.providers.values()) yield provider;
  }

  close(): void {
    for (const { connection } of this.providers.values()) void connection?.close();
    this.providers.clear();
  }
}
